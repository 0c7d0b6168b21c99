"""Installs what packages.txt lists and this system lacks."""
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from . import ui

LIST = ui.ROOT / "packages.txt"
STAMPS = ui.ROOT / "build" / ".packages"
DPKG_STATUS = "/var/lib/dpkg/status"
OS_RELEASE = pathlib.Path("/etc/os-release")
SKIP = "LAB_SKIP_PACKAGES"


def parse(text):
    """packages.txt -> {group: [package, ...]}."""
    groups = {}
    group = None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        if line.startswith("[") and line.endswith("]"):
            group = groups.setdefault(line[1:-1].strip(), [])
        elif group is None or len(line.split()) != 1:
            raise ui.Problem(f"packages.txt:{number} is '{line}', but a line holds one [group] "
                             "or, below a group, one package.")
        else:
            group.append(line)
    return groups


def of_groups(groups):
    """The packages of the named groups, in order, each once."""
    listed = parse(LIST.read_text())
    unknown = [group for group in groups if group not in listed]
    if unknown:
        raise ui.Problem(f"packages.txt has no group '{unknown[0]}'; it has "
                         f"{', '.join(listed)}.", ui.USAGE)
    return list(dict.fromkeys(package for group in groups for package in listed[group]))


def answer(*command):
    """What a command prints; its complaints are nobody's business."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=False).stdout


def missing(packages):
    """Those of the packages that dpkg does not report as installed."""
    listed = answer("dpkg-query", "-W",
                    "-f=${Package}:${Architecture} ${db:Status-Status}\n", *packages)
    installed = {line.split()[0] for line in listed.splitlines()
                 if line.endswith(" installed")}
    own = answer("dpkg", "--print-architecture").strip()
    return [package for package in packages
            if installed.isdisjoint({package, f"{package}:{own}", f"{package}:all"})]


def as_root():
    """What goes before a command that needs root: [] for root, None where nobody lets us."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and subprocess.run(
            ["sudo", "-n", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False).returncode == 0:
        return ["sudo", "-n"]
    return None


def fingerprint():
    """Changes when the list does, and when packages come or go."""
    digest = hashlib.sha256(LIST.read_bytes())
    digest.update(str(os.stat(DPKG_STATUS).st_mtime_ns).encode())
    return digest.hexdigest()


def add_architectures(packages):
    """Commands after which apt knows packages such as libfmt-dev:arm64."""
    names = sorted({package.split(":")[1] for package in packages if ":" in package})
    if names and "ID=ubuntu" in OS_RELEASE.read_text().splitlines():
        raise ui.Problem(f"Ubuntu's archive has no packages for {names[0]}: they are on a server "
                         "of their own, which ./lab does not set up.")
    return [["dpkg", "--add-architecture", name] for name in names]


def install(packages):
    prefix = as_root()
    names = " ".join(packages)
    before = add_architectures(packages)
    if prefix is None:
        lines = [*before, ["apt-get", "update"],
                 ["apt-get", "install", "-y", "--no-install-recommends", *packages]]
        raise ui.Problem(
            f"missing packages, and installing them needs root. Type\n\n"
            f"    {' && '.join(shlex.join(['sudo', *line]) for line in lines)}"
            f"\n\nand start again ({SKIP}=1 skips this check where the libraries come from "
            "elsewhere, such as modules or conda).")
    ui.say(f"installing {len(packages)} missing packages: {names}")
    for command in before:
        ui.call([*prefix, *command], stdout=sys.stderr)
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q",
           "-o", "DPkg::Lock::Timeout=300"]
    if ui.call([*apt, "update"], stdout=sys.stderr) != 0:
        ui.say("apt-get update failed; trying with the package lists that are here.")
    command = [*apt, "install", "-y", "--no-install-recommends", *packages]
    if ui.call(command, stdout=sys.stderr) != 0 or missing(packages):
        raise ui.Problem(f"apt-get could not install {names}; its messages are above, and "
                         f"the command was: {shlex.join(command)}")


def ensure(*groups):
    """Makes sure that the groups' packages are installed."""
    packages = of_groups(groups)
    if os.environ.get(SKIP):
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg-query")):
        without_apt(groups, packages)
        return
    stamp = STAMPS / "-".join(groups)
    if stamp.is_file() and stamp.read_text() == fingerprint():
        return
    lacking = missing(packages)
    if lacking:
        install(lacking)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(fingerprint())


def without_apt(groups, packages):
    """Other systems name their packages differently: say what is needed, once, and go on."""
    stamp = STAMPS / "-".join(groups)
    told = hashlib.sha256(LIST.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == told:
        return
    ui.say("this system has no apt-get, so please see to these yourself (Debian's names): "
           + ", ".join(packages))
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(told)
