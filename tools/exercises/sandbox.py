"""Runs a program that may be hostile or just wrong: with limits, and with an end.

When run() returns, nothing that the program started is left. Where the system allows it (root,
or user namespaces), the program is in a process and network namespace of its own, and the end
of that namespace's first process ends all others in it, wherever they moved. Elsewhere its
process group is killed, and then every process that carries its mark in the environment.
"""
import contextlib
import dataclasses
import functools
import os
import pathlib
import pwd
import resource
import shutil
import signal
import subprocess
import threading
import time
import uuid

MARK = "LAB_SANDBOX"
SETPRIV, UNSHARE, PRLIMIT = (shutil.which(n) for n in ("setpriv", "unshare", "prlimit"))
# The namespace's first process: it outlives nothing, and a student's code cannot touch it.
# `exit` keeps the shell from replacing itself by the program.
FIRST = ["/bin/sh", "-c", '"$@"; exit $?', "sh"]
GRACE = 5.0     # seconds to wait for output after the end


@dataclasses.dataclass(frozen=True)
class Limits:
    seconds: float = 10.0           # of wall time; CPU time is limited to a little more
    memory: int = 2 << 30           # bytes of address space; 0: no limit (CUDA reserves a lot)
    file_size: int = 16 << 20       # bytes of each file it writes
    output: int = 64 << 10          # bytes of its output that are kept
    processes: int = 64             # of the unprivileged user; not applied to one's own user


@dataclasses.dataclass
class Ended:
    """How a program ended."""
    code: int                       # exit code; 128 + n for signal n
    output: str
    truncated: bool
    timed_out: bool
    seconds: float


def exists(user):
    try:
        return pwd.getpwnam(user).pw_uid > 0
    except KeyError:
        return False


def default_user():
    """Whom students' code runs as: nobody for root, oneself for everyone else."""
    return "nobody" if os.geteuid() == 0 and SETPRIV and exists("nobody") else None


def works(command):
    try:
        return subprocess.run([*command, "true"], stdin=subprocess.DEVNULL, timeout=20,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@functools.lru_cache(maxsize=None)
def isolation():
    """(what goes before a command, what it isolates in words); empty where nothing can be."""
    if not UNSHARE:
        return (), ""
    apart = ["--fork", "--kill-child", "--pid"]
    own = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    for more, words in ((["--net", "--ipc"], "processes and network"), ([], "processes")):
        command = [UNSHARE, *own, *apart, *more]
        if works([*command, *FIRST]):
            return (*command, *FIRST), words
    return (), ""


def described(user):
    """The isolation in a sentence, for the log of a grading."""
    words = isolation()[1]
    return (f"as {user}" if user else "as the user who grades") + \
        (f", with {words} of its own" if words else
         ", with no isolation but limits: this system allows no namespaces")


def fence(command, limits, user):
    """The command with all that goes before it."""
    inside = []
    if user:
        group = pwd.getpwnam(user).pw_gid
        inside = [SETPRIV, f"--reuid={user}", f"--regid={group}", "--clear-groups",
                  "--no-new-privs", "--bounding-set=-all"]
        if PRLIMIT:
            inside += [PRLIMIT, f"--nproc={limits.processes}:{limits.processes}"]
    elif PRLIMIT and "--user" in isolation()[0] and kernel() >= (5, 14):
        # Since 5.14 a user namespace counts its own processes only.
        inside = [PRLIMIT, f"--nproc={limits.processes}:{limits.processes}"]
    return [*isolation()[0], *inside, *(str(part) for part in command)]


def kernel():
    with contextlib.suppress(ValueError):
        return tuple(int(n) for n in os.uname().release.split(".")[:2])
    return (0, 0)


def set_limits(limits):
    """In the child, before the program starts."""
    cpu = int(limits.seconds) + 2
    wanted = {resource.RLIMIT_CPU: cpu, resource.RLIMIT_FSIZE: limits.file_size,
              resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 256}
    if limits.memory:
        wanted[resource.RLIMIT_AS] = limits.memory
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))


class Reader(threading.Thread):
    """Keeps the beginning of what a pipe says, and drains the rest."""

    def __init__(self, pipe, keep):
        super().__init__(daemon=True)
        self.pipe, self.keep, self.kept, self.truncated = pipe, keep, b"", False
        self.start()

    def run(self):
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self.pipe.fileno(), 1 << 16):
                room = self.keep - len(self.kept)
                self.truncated |= len(chunk) > room
                self.kept += chunk[:max(0, room)]


def marked(mark):
    """The processes that carry a mark in their environment."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in pathlib.Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                    found.append(int(entry))
    return found


def end_all(process, mark):
    """Ends the process group, and then whoever left it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if isolation()[0] or not os.path.isdir("/proc"):
        return      # with its first process the kernel has ended the namespace
    for _ in range(100):    # a process that is faster than this loop meets RLIMIT_CPU
        left = marked(mark)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def run(command, cwd, limits, user=None):
    """Runs a command in the folder `cwd`.

    @param user  a name: run as this user (needs root); None: as oneself
    """
    mark = uuid.uuid4().hex
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8",
                   "HOME": str(cwd), MARK: mark}
    for name in ("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "TMPDIR"):
        if name in os.environ:
            environment[name] = os.environ[name]
    start = time.monotonic()
    process = subprocess.Popen(
        fence(command, limits, user), cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        preexec_fn=functools.partial(set_limits, limits))
    reader = Reader(process.stdout, limits.output)
    timed_out = False
    try:
        process.wait(timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        end_all(process, mark)
        reader.join(GRACE)
    process.stdout.close()
    code = process.returncode
    return Ended(128 - code if code < 0 else code, reader.kept.decode(errors="replace"),
                 reader.truncated, timed_out, time.monotonic() - start)
