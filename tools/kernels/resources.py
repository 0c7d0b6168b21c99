"""What the compiler says about each kernel: registers, spills, shared memory, instructions.

Compiles kernels/ladders and kernels/cuda with nvcc, for every architecture of occupancy.SMS. Needs
no GPU. The counts of instructions need nvdisasm or cuobjdump, from the CUDA toolkit or from the
packages of tools/kernels/requirements.txt; without them those columns stay empty.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from kernels import occupancy, sass  # noqa: E402

RECORD = ROOT / "docs" / "measurements" / "kernel_resources.json"
FOLDERS = ("kernels/ladders", "kernels/cuda")
FLAGS = ["-std=c++20", "--expt-relaxed-constexpr", "-diag-suppress=554", "-Xptxas", "-v"]
EXIT_FAILED, EXIT_UNAVAILABLE = 1, 77
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers.*")
SHARED = re.compile(r"(\d+) bytes smem")
PTX_ENTRY = re.compile(r"\.entry (\w+)\(.*?\n\)(.*?)\n\{(.*?)\n\}", re.S)
LAUNCH_BOUNDS = re.compile(r"\.maxntid (\d+)(?:, (\d+))?(?:, (\d+))?")


def listed():
    """The files with kernels in them, by name from the root."""
    return [str(path.relative_to(ROOT)) for folder in FOLDERS
            for path in sorted((ROOT / folder).rglob("*.cu"))]


def parse_ptxas(text):
    """{mangled name: resources} of what `ptxas -v` prints."""
    kernels, now = {}, None
    for line in text.splitlines():
        if match := ENTRY.search(line):
            now = kernels[match[1]] = {"registers": 0, "spill_stores": 0, "spill_loads": 0,
                                       "stack": 0, "shared": 0}
        elif now is None:
            continue
        elif match := SPILLS.search(line):      # of the kernel, or of a function that it calls
            for name, value in zip(("stack", "spill_stores", "spill_loads"), match.groups()):
                now[name] += int(value)
        elif match := USED.search(line):
            now["registers"] = int(match[1])
            shared = SHARED.search(match[0])
            now["shared"] = int(shared[1]) if shared else 0
    return kernels


def parse_ptx(text):
    """{mangled name: (threads of a block or None, whether it uses dynamic shared memory)}."""
    kernels = {}
    for name, directives, body in PTX_ENTRY.findall(text):
        bounds = LAUNCH_BOUNDS.search(directives)
        threads = None
        if bounds:
            threads = 1
            for extent in bounds.groups():
                threads *= int(extent or 1)
        kernels[name] = (threads, "dynamic_smem" in body)
    return kernels


def demangled(names):
    """{mangled: readable}; without the namespaces of decodelab, which every kernel shares."""
    names = list(names)
    if not names or not shutil.which("c++filt"):
        return {name: name for name in names}
    said = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True).stdout.splitlines()
    return {name: short(text) for name, text in zip(names, said)}


def short(signature):
    """`void lab::cuda::(anonymous namespace)::tiled<32>(float*)` -> `tiled<32>`."""
    text = re.sub(r"\b(?:lab::)?(?:cuda::)?(?:\(anonymous namespace\)::)", "", signature)
    text = re.sub(r"\blab::(?:cuda::)?", "", text).removeprefix("void ")
    depth = 0
    for at, c in enumerate(text):       # the parenthesis of the parameters, not of <(int)32>
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:
            text = text[:at]
            break
    return re.sub(r"\(\w+\)(?=-?\d)", "", text)


def compile_one(nvcc, file, arch, includes, disassembler):
    """The kernels of one file for one architecture: {mangled name: resources}."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, "kernel.cubin")
        done = subprocess.run(
            [nvcc, *FLAGS, *(f"-I{path}" for path in includes), f"-arch={arch}", "-cubin", "--keep",
             "--keep-dir", folder, "-o", cubin, str(ROOT / file)],
            capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"nvcc cannot compile {file} for {arch}:\n{done.stdout}{done.stderr}")
        kernels = parse_ptxas(done.stdout + done.stderr)
        ptx = next(pathlib.Path(folder).glob("*.ptx")).read_text()
        for name, (threads, dynamic) in parse_ptx(ptx).items():
            kernel = kernels[name]
            kernel["threads"], kernel["dynamic_shared"] = threads, dynamic
            kernel["occupancy"] = threads and occupancy.occupancy(
                arch, threads, kernel["registers"], kernel["shared"])
        if disassembler and kernels:
            for name, found in sass.counts(disassembler, cubin).items():
                if name in kernels:
                    kernels[name]["sass"] = {k: n for k, n in found.items() if n}
        return kernels


def measure(nvcc, files, disassembler):
    """The record of the files: a list of {file, kernel, sm_80: {...}, sm_90: {...}}."""
    jobs = [(file, arch) for file in files for arch in occupancy.SMS]
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        os.symlink(ROOT / "lib", os.path.join(folder, "lab"))   # "lab/core/view.hpp"
        includes = [folder, ROOT / "kernels" / "include", ROOT / "kernels"]
        results = pool.map(lambda job: compile_one(nvcc, *job, includes, disassembler), jobs)
        found = {}
        for (file, arch), kernels in zip(jobs, results):
            for mangled, name in demangled(kernels).items():
                entry = found.setdefault((file, name), {"file": file, "kernel": name})
                entry[arch] = kernels[mangled]
    return [found[key] for key in sorted(found)]


def spilling(kernels):
    """A sentence for each kernel that keeps registers in memory."""
    return [f"{k['file']}: {k['kernel']} spills on {arch}: {k[arch]['spill_stores']} bytes of stores,"
            f" {k[arch]['spill_loads']} of loads"
            for k in kernels for arch in occupancy.SMS
            if k[arch]["spill_stores"] or k[arch]["spill_loads"]]


def table(kernels, arch):
    lines = [f"{arch:<58} regs spill stack shared threads occupancy  instructions"]
    for k in kernels:
        r = k[arch]
        share = "" if r["occupancy"] is None else \
            f"{'<' if r['dynamic_shared'] else ''}{100 * r['occupancy']:.0f} %"
        told = " ".join(f"{name} {r['sass'][name]}" for name in sass.TELLING
                        if name in r.get("sass", {}) and name not in ("LDG", "STG", "LDS", "STS"))
        name = f"{k['file'].removeprefix('kernels/')} {k['kernel']}"
        lines.append(f"{name:<58} {r['registers']:4} {r['spill_stores'] + r['spill_loads']:5} "
                     f"{r['stack']:5} {r['shared']:6} {r['threads'] or '':>7} {share:>9}  {told}")
    return "\n".join(lines)


def write(nvcc, disassembler, kernels, files):
    """Writes the record; where only some files were measured, the others keep what they have."""
    if files and RECORD.exists():
        known = json.loads(RECORD.read_text())["kernels"]
        kernels = sorted([k for k in known if k["file"] not in files] + kernels,
                         key=lambda k: (k["file"], k["kernel"]))
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True)
    record = {"schema": "decodelab-resources-1", "nvcc": re.search(r"V([\d.]+)", version.stdout)[1],
              "disassembler": disassembler and sass.version(disassembler), "kernels": kernels}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE.cu", help="default: all that have kernels")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a kernel spills")
    parser.add_argument("--write", action="store_true",
                        help=f"write {RECORD.relative_to(ROOT)}, which the pages read")
    options = parser.parse_args(arguments)
    nvcc = shutil.which("nvcc")
    if not nvcc:
        print("resources: there is no nvcc here, which knows what a kernel uses; it comes with the "
              "CUDA toolkit", file=sys.stderr)
        return EXIT_UNAVAILABLE
    disassembler = sass.disassembler()
    if not disassembler:
        print("resources: no nvdisasm here, so instructions are not counted; pip install -r "
              "tools/kernels/requirements.txt brings it", file=sys.stderr)
    try:
        kernels = measure(nvcc, options.files or listed(), disassembler)
    except RuntimeError as problem:
        print(f"resources: {problem}", file=sys.stderr)
        return EXIT_FAILED
    for arch in occupancy.SMS:
        print(table(kernels, arch) + "\n")
    if options.write:
        write(nvcc, disassembler, kernels, options.files)
    problems = spilling(kernels)
    print("\n".join(problems) or "no kernel spills")
    return EXIT_FAILED if options.check and problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
