"""Configures and builds build/<preset>, with a sign of life on any kind of output."""
import contextlib
import fcntl
import json
import math
import os
import re
import shutil
import subprocess
import time

from . import packages, ui

GIB = 1 << 30
BYTES_PER_JOB = 1.5 * GIB
STATUS_LINE = re.compile(r"\[(\d+)/(\d+)\] (.*)")
RUN, TEST, SANITIZE = "cpu", "cpu", "cpu-debug"
GROUPS = {SANITIZE: ["sanitize"], "aarch64": ["aarch64"]}  # of packages, beside "build"


def presets():
    """The presets that can be built, by name."""
    listed = json.loads((ui.ROOT / "CMakePresets.json").read_text())["configurePresets"]
    return [preset["name"] for preset in listed if not preset.get("hidden")]


def directory(preset):
    return ui.ROOT / "build" / preset


def program(name, preset=RUN):
    """The path of a built program: a tool's or a chapter's name."""
    folder = "tools" if name == "decodelab" else "chapters"
    return directory(preset) / folder / name / name


def first_line(path):
    try:
        with open(path) as file:
            return file.readline().strip()
    except OSError:
        return ""


def cores():
    """Usable processors, and no more than the container's share."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = first_line("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0] != "max":
        count = min(count, max(1, math.ceil(int(quota[0]) / int(quota[1]))))
    return count or 1


def free_memory():
    """Bytes that compilers may use; None where the system does not say."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        with open("/proc/meminfo") as file:
            line = next(line for line in file if line.startswith("MemAvailable:"))
        free = int(line.split()[1]) * 1024
        limit = first_line("/sys/fs/cgroup/memory.max")
        used = first_line("/sys/fs/cgroup/memory.current")
        if limit.isdigit() and used.isdigit():
            free = min(free, int(limit) - int(used))
        return free
    return None


def jobs():
    """Parallel compilers: one per core, and memory for each."""
    free = free_memory()
    room = cores() if free is None else int(free // BYTES_PER_JOB)
    return max(1, min(cores(), room))


@contextlib.contextmanager
def only_one(folder):
    """Two ./lab at once take turns: ninja itself does not notice a second ninja."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lab.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            ui.say(f"another ./lab is building {folder.name}; waiting for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cached(folder):
    """CMakeCache.txt as a dictionary."""
    try:
        text = (folder / "CMakeCache.txt").read_text()
    except OSError:
        return {}
    return dict(re.findall(r"^([A-Za-z_0-9]+):[A-Z]+=(.*)$", text, re.MULTILINE))


def configure(preset):
    """Runs cmake where build/<preset> is new, incomplete, or was made for another folder."""
    folder = directory(preset)
    cache = cached(folder)
    launcher = cache.get("CMAKE_CXX_COMPILER_LAUNCHER")
    moved = cache.get("CMAKE_HOME_DIRECTORY") not in (None, str(ui.ROOT))
    stale = moved or (launcher and not shutil.which(launcher))
    if (folder / "build.ninja").exists() and not stale:
        return
    if not shutil.which("cmake"):
        raise ui.Problem("there is no cmake here; install CMake 3.25 or newer, Ninja and a "
                         "C++20 compiler.")
    command = ["cmake", "--preset", preset]
    if stale:
        command.append("--fresh")
    if shutil.which("ccache"):
        command.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    ui.say(f"configuring build/{preset} ...")
    done = subprocess.run(command, cwd=ui.ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        ui.say(done.stdout.rstrip())
        raise ui.Problem(f"cmake could not configure build/{preset}: its messages are above, "
                         "and packages.txt lists the libraries it looks for.")


def follow(lines, title, clock=time.monotonic):
    """Shows ninja's output: a status line that moves, and whatever compilers say."""
    status = ui.Status()
    after_failed = False
    try:
        for line in lines:
            line = line.rstrip("\n")
            step = STATUS_LINE.match(line)
            if step:
                done, total, what = int(step[1]), int(step[2]), step[3]
                percent = 100 * done // max(1, total)
                status.show(f"{title}: {percent:3d} % ({done}/{total}) {what}", clock())
            elif after_failed or line == "ninja: no work to do." or line.startswith("-- "):
                pass  # the compiler's command line, and cmake when it runs again
            else:
                status.clear()
                ui.say(line)
            after_failed = line.startswith("FAILED:")
    finally:
        status.clear()


def make(preset, *targets):
    """Installs, configures and builds; all targets where none is named."""
    if preset not in presets():
        raise ui.Problem(f"there is no preset '{preset}'; there are {', '.join(presets())}.",
                         ui.USAGE)
    packages.ensure("build", *GROUPS.get(preset, []))
    folder = directory(preset)
    with only_one(folder):
        configure(preset)
        command = ["cmake", "--build", str(folder), "--parallel", str(jobs())]
        if targets:
            command += ["--target", *targets]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", env={**os.environ, "NINJA_STATUS": "[%f/%t] "})
        try:
            follow(process.stdout, f"building build/{preset}")
            code = process.wait()
        except KeyboardInterrupt:
            ui.stop(process)
            raise
    if code != 0:
        raise ui.Problem(f"build/{preset} does not build; the compiler's messages are above.")
