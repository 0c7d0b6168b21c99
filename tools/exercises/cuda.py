"""Compiles an exercise of CUDA kernels: for the emulator of kernels/simt, or with nvcc.

The emulator is compiled once, in two flavours, and so are the tests, which are plain C++. After
that a student's edit costs one short compilation for each flavour, both at a time.
"""
import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
import shutil
import tempfile

from .compiling import COMPILE_SECONDS, FLAGS, Toolchain, call
from .problem import ExerciseError
from .sandbox import Limits, run as run_limited

# As cmake/Cuda.cmake compiles .cu files for the emulator; a test compares them.
EMULATED = ["-std=c++20", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Wno-unused-function",
            "-Wno-unused-parameter", "-ffp-contract=off", "-fdiagnostics-color=never"]
EMULATED_GCC = ["-fno-extern-tls-init"]
PLAIN = ["-O1"]
TRACE = ["-O1", "-g1", "-fno-tree-vectorize", "-fsanitize=thread"]
TRACE_GCC = ["-fno-tree-sra", "--param=tsan-instrument-func-entry-exit=0"]
TRACE_CLANG = ["-mllvm", "-tsan-instrument-func-entry-exit=0"]
NVCC = ["-std=c++20", "-arch=native", "--expt-relaxed-constexpr", "-diag-suppress=554"]

# From the repository's root: where headers are, and what they are called to includes.
HEADERS = {"kernels/simt/*.hpp": "simt", "kernels/cuda/compat.hpp": "cuda",
           "kernels/cuda/ptx.hpp": "cuda", "kernels/include/lab/kernels/gpu.hpp": "lab/kernels",
           "lib/core/dtype.hpp": "lab/core", "lib/core/half.hpp": "lab/core",
           "lib/core/view.hpp": "lab/core", "exercises/support/cuda.hpp": "",
           "exercises/support/device.hpp": ""}
SUPPORT = ("kernels/cuda/runtime.cu", "exercises/support/device.cu")


@dataclasses.dataclass(frozen=True)
class Flavour:
    """One way to build a kernel."""
    name: str
    command: tuple          # a compiler with its flags
    language: tuple         # the option that says what a source is
    link: tuple             # a linker, up to the objects

    def program(self, binary):
        """The program of this flavour beside that of the first one."""
        return pathlib.Path(f"{binary}.trace" if self.name == "trace" else binary)


def emulator_sources(root, flavour):
    """The emulator's own sources, as kernels/simt/CMakeLists.txt divides them."""
    there = sorted((root / "kernels" / "simt").glob("*.cpp"))
    if flavour == "trace":
        return [path for path in there if path.name != "no_tracer.cpp"]
    return [path for path in there if not path.name.startswith("trace")]


class CudaToolchain(Toolchain):
    """The compiler of the tests, and for one device the compilers of the kernels."""

    def __init__(self, root, folder, device="simt"):
        super().__init__(root, folder)
        self.root, self.device = pathlib.Path(root), device
        self.own = []       # how the emulator's own sources are compiled
        self.flavours = self.on_gpu() if device == "cuda" else self.emulated()
        digest = hashlib.sha256(repr((self.flavours, self.own)).encode())
        for path in sorted(self.inputs()):
            digest.update(path.read_bytes())
        self.device_folder = f"{device}-{digest.hexdigest()[:16]}"

    def emulated(self):
        base = [self.cxx, *EMULATED, *([] if self.is_clang else EMULATED_GCC)]
        trace = [*TRACE, *(TRACE_CLANG if self.is_clang else TRACE_GCC)]
        self.own = [*base, "-O2"]
        return [Flavour(name, (*base, *flags), ("-x", "c++"), (self.cxx, "-pthread"))
                for name, flags in (("plain", PLAIN), ("trace", trace))]

    def on_gpu(self):
        nvcc = shutil.which("nvcc")
        if not nvcc:
            raise ExerciseError("there is no nvcc here; without --device cuda the exercise runs "
                                "on the emulator")
        return [Flavour("cuda", (nvcc, *NVCC), ("-x", "cu"), (nvcc,))]

    def headers(self):
        """{path: its place in the include folder}"""
        return {path: place for pattern, place in HEADERS.items()
                for path in self.root.glob(pattern)}

    def emulator(self, flavour):
        """The emulator's own sources for a flavour."""
        return emulator_sources(self.root, flavour.name) if self.own else []

    def inputs(self):
        own = {source for flavour in self.flavours for source in self.emulator(flavour)}
        return {*self.headers(), *own, *(self.root / path for path in SUPPORT)}

    @property
    def include(self):
        return self.folder / self.device_folder / "include"

    def objects(self, flavour):
        """What is linked to every program of a flavour."""
        folder = self.folder / self.device_folder
        return [*(folder / "emulator" / f"{source.stem}.o" for source in self.emulator(flavour)),
                *sorted((folder / flavour.name).glob("*.o"))]

    # ---------------------------------------------------------------- once

    def prepare(self, say=lambda text: None):
        super().prepare(say)
        if (self.folder / self.device_folder).exists():
            return
        say("compiling the emulator (once) ..." if self.device == "simt" else
            "compiling the device's support (once) ...")
        with tempfile.TemporaryDirectory(dir=self.folder) as made:
            made = pathlib.Path(made)
            for path, place in self.headers().items():
                (made / "include" / place).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, made / "include" / place / path.name)
            commands = self.commands_once(made)
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                for done in pool.map(lambda command: call(command, made), commands):
                    if done.returncode != 0:
                        raise ExerciseError("the emulator does not compile:\n" +
                                            done.stdout[:4000])
            made.chmod(0o755)
            try:
                os.rename(made, self.folder / self.device_folder)
            except OSError:
                return      # another ./lab was faster
            made.mkdir()    # for TemporaryDirectory to remove

    def commands_once(self, made):
        """Compiles the emulator and the support into the folder `made`."""
        jobs = {made / "emulator" / f"{source.stem}.o": (self.own, source)
                for flavour in self.flavours for source in self.emulator(flavour)}
        for flavour in self.flavours:
            start = [*flavour.command, *flavour.language]
            jobs |= {made / flavour.name / pathlib.Path(path).with_suffix(".o").name:
                     (start, self.root / path) for path in SUPPORT}
        for target in jobs:
            target.parent.mkdir(exist_ok=True)
        commands = [[*start, "-c", source, "-o", target]
                    for target, (start, source) in jobs.items()]
        if self.device == "simt":
            for flavour in self.flavours:
                header = self.kernel_header(made, flavour)
                shutil.copyfile(made / "include" / "cuda.hpp", header.with_suffix(""))
                commands.append([*flavour.command, "-x", "c++-header",
                                 made / "include" / "cuda.hpp", "-o", header])
        return [[*command, "-I", made / "include", "-I", self.folder] for command in commands]

    def kernel_header(self, folder, flavour):
        """Where cuda.hpp is, compiled ahead: half of the time that a kernel's file takes."""
        return folder / flavour.name / ("cuda.hpp.pch" if self.is_clang else "cuda.hpp.gch")

    def compiled_ahead(self, flavour):
        """The options by which a kernel's file starts with the header compiled ahead."""
        if self.device == "cuda":
            return []
        header = self.kernel_header(self.folder / self.device_folder, flavour)
        return ["-include-pch", header] if self.is_clang else \
            ["-I", header.parent, "-include", "cuda.hpp"]

    def tests_object(self, source):
        """The object of a file of tests, compiled once for each text of it."""
        digest = hashlib.sha256(source.read_bytes())
        for header in sorted(source.parent.glob("bridge.hpp")):
            digest.update(header.read_bytes())
        target = self.folder / self.device_folder / f"tests-{digest.hexdigest()[:16]}.o"
        if not target.exists():
            mark = f".{os.getpid()}"
            early = ["-include-pch", self.header] if self.is_clang else ["-include", "testing.hpp"]
            done = call([self.cxx, *FLAGS, "-I", self.folder, *early, "-I", self.include, "-I",
                         source.parent, "-c", source, "-o", f"{target}{mark}"], source.parent)
            if done.returncode != 0:
                raise ExerciseError("the tests do not compile:\n" + done.stdout[:4000])
            os.replace(f"{target}{mark}", target)
        return target

    # ---------------------------------------------------------------- each time

    def build(self, sources, include, binary, user=None):
        """Compiles the kernels in `include` in every flavour, and links each with the tests.

        @return (whether it worked, what the compiler said)
        """
        sources = [pathlib.Path(source) for source in sources]
        tests = [self.tests_object(source) for source in sources if source.suffix == ".cpp"]
        kernels = [source for source in sources if source.suffix == ".cu"]
        with concurrent.futures.ThreadPoolExecutor(len(self.flavours)) as pool:
            said = list(pool.map(
                lambda flavour: self.build_flavour(flavour, kernels, tests, include, binary, user),
                self.flavours))
        bad = [text for worked, text in said if not worked]
        return not bad, bad[0] if bad else said[0][1]

    def build_flavour(self, flavour, kernels, tests, include, binary, user):
        program = flavour.program(binary)
        own = [pathlib.Path(f"{program}.{kernel.stem}.o") for kernel in kernels]
        names = [] if self.device == "cuda" else [f"-fmacro-prefix-map={include}{os.sep}="]
        steps = [[*flavour.command, *flavour.language, *self.compiled_ahead(flavour), *names,
                  "-I", include, "-I", self.include, "-I", self.folder,
                  "-c", kernel, "-o", target] for kernel, target in zip(kernels, own)]
        steps.append([*flavour.link, *own, *tests, self.folder / "main.o", *self.libraries,
                      *self.objects(flavour), "-o", program])
        limits = Limits(seconds=COMPILE_SECONDS, memory=0 if self.device == "cuda" else 4 << 30,
                        file_size=1 << 30, output=1 << 20, processes=256)
        for target in [program, *own]:
            target.unlink(missing_ok=True)
        said = ""
        for step in steps:
            done = run_limited(step, program.parent, limits, user=user)
            said += done.output
            if done.timed_out:
                return False, f"the compiler was stopped after {COMPILE_SECONDS} s"
            if done.code != 0:
                return False, said
        return program.exists(), said


def toolchain(exercise, root, folder, device="simt"):
    """The toolchain that an exercise needs."""
    return CudaToolchain(root, folder, device) if exercise.is_cuda else Toolchain(root, folder)
