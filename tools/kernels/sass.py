"""Counts the telling instructions of a compiled kernel, with NVIDIA's disassembler."""
import importlib.metadata
import os
import re
import shutil
import subprocess

# name in the tables -> what the disassembler calls it
TELLING = {
    "HMMA": r"HMMA\.",                                  # tensor-core products
    "LDSM": r"LDSM\.",                                  # ldmatrix
    "LDGSTS": r"LDGSTS\.",                              # cp.async
    "IDP.4A": r"IDP\.4A\.",                             # dp4a
    "LDG.128": r"LDG\.(?:\w+\.)*128\b",
    "STG.128": r"STG\.(?:\w+\.)*128\b",
    "LDS.128": r"LDS\.(?:\w+\.)*128\b",
    "STS.128": r"STS\.(?:\w+\.)*128\b",
    "LDG": r"LDG\.", "STG": r"STG\.", "LDS": r"LDS\b", "STS": r"STS\b",
    "FFMA": r"FFMA\b", "MUFU": r"MUFU\.", "SHFL": r"SHFL\.", "BAR": r"BAR\.SYNC",
    "local": r"(?:LDL|STL)\b",                          # local memory: spills, addressed arrays
}
PATTERNS = {name: re.compile(pattern) for name, pattern in TELLING.items()}
FUNCTION = re.compile(r"^(?:\.text\.(\w+):|\s*Function : (\w+))\s*$")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
PACKAGES = {"nvdisasm": "nvidia-cuda-nvdisasm", "cuobjdump": "nvidia-cuda-cuobjdump"}


def from_package(name):
    """The program of a Python package; None where it is not installed."""
    try:
        files = importlib.metadata.distribution(PACKAGES[name]).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = next((str(f.locate()) for f in files if f.name == name), None)
    if found and not os.access(found, os.X_OK):
        os.chmod(found, 0o755)
    return found


def disassembler():
    """The command that prints a cubin's instructions; None where there is none."""
    for name, options in (("nvdisasm", ["-c"]), ("cuobjdump", ["-sass"])):
        program = shutil.which(name) or from_package(name)
        if program:
            return [program, *options]
    return None


def version(command):
    """As "nvdisasm 13.0.85"."""
    said = subprocess.run([command[0], "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"V([\d.]+)", said.stdout)
    return f"{os.path.basename(command[0])} {match[1] if match else '(version unknown)'}"


def count(text):
    """{mangled name: {instruction: count}} of a disassembly; "all" is every instruction."""
    kernels, now = {}, None
    for line in text.splitlines():
        if start := FUNCTION.match(line):
            now = kernels.setdefault(start[1] or start[2], dict.fromkeys(["all", *TELLING], 0))
        elif now is not None and (found := INSTRUCTION.match(line)):
            if found[1] == "NOP":       # padding after the end
                continue
            now["all"] += 1
            for name, pattern in PATTERNS.items():
                now[name] += bool(pattern.match(found[1]))
    return kernels


def counts(command, cubin):
    done = subprocess.run([*command, cubin], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed on {cubin}: {done.stderr.strip()}")
    return count(done.stdout)
