"""test_neon.py BUILD DECODELAB: the NEON kernels, cross-compiled in BUILD and run under qemu.

The kernel tests must pass, and the built-in model must write the tokens that DECODELAB, the
native program, writes. Exits with 77 where a package of the group [aarch64] is missing.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from lab import build  # noqa: E402

COMPILER, QEMU = "aarch64-linux-gnu-g++", "qemu-aarch64"
TESTS = ("test_ops", "test_linear", "test_attention")
WITH_DOT_PRODUCTS, WITHOUT = "max", "cortex-a53"  # processors that qemu knows
# Under an emulator it would measure the emulator.
NO_MEASUREMENTS = "~the peaks are measured*"


def missing():
    """What of the group [aarch64] is not here; empty if all is."""
    lacking = [name for name in (COMPILER, QEMU) if not shutil.which(name)]
    if COMPILER not in lacking:
        for library in ("libfmt.so", "libpcre2-8.so", "libtbb.so"):
            path = subprocess.run([COMPILER, f"-print-file-name={library}"], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout.strip()
            if not os.path.isabs(path):
                lacking.append(f"{library} for aarch64")
    return lacking


def make(folder):
    """Builds what this test runs. Optimised only so far that it all takes the least time."""
    command = ["cmake", "--preset", "aarch64", "-B", folder, "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
               "-DLAB_BUILD_CHAPTERS=OFF"]
    if shutil.which("ccache"):
        command.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "--parallel", str(build.jobs()),
                    "--target", *TESTS, "decodelab"], check=True)


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command} exited with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def tokens(*program_and_options):
    return json.loads(run(*program_and_options, "--threads", "1", "--json"))["ids"]


class Neon(unittest.TestCase):
    def emulate(self, processor, program, *options):
        return run(QEMU, "-cpu", processor, next(BUILD.glob(f"*/*/{program}")), *options)

    def test_kernels(self):
        for program in TESTS:
            with self.subTest(program):
                self.emulate(WITH_DOT_PRODUCTS, program, NO_MEASUREMENTS)

    def test_a_processor_without_dot_products_takes_the_plain_kernels(self):
        chosen = ["test_ops", "--success", "add *"]  # which names the instruction sets
        self.assertIn("instruction set neon", self.emulate(WITH_DOT_PRODUCTS, *chosen))
        said = self.emulate(WITHOUT, *chosen)
        self.assertIn("instruction set plain", said)
        self.assertNotIn("neon", said)

    def test_tokens(self):
        program = next(BUILD.glob("*/*/decodelab"))
        for activations in ("f32", "int8"):
            options = ["generate", "--activations", activations, "--max-tokens", "24",
                       "--prompt", "The numbers from one to five are"]
            with self.subTest(activations):
                self.assertEqual(tokens(QEMU, "-cpu", WITH_DOT_PRODUCTS, program, *options),
                                 tokens(NATIVE, *options))

    def test_the_cuda_emulator_switches_its_fibers(self):
        program = next(BUILD.glob("*/*/decodelab"))
        options = ["generate", "--max-tokens", "3", "--prompt", "The numbers"]
        self.assertEqual(
            tokens(QEMU, "-cpu", WITH_DOT_PRODUCTS, program, *options, "--device", "simt"),
            tokens(NATIVE, *options))


if __name__ == "__main__":
    BUILD, NATIVE = pathlib.Path(sys.argv[1]), sys.argv[2]
    if missing():
        print(f"skipped: there is no {', no '.join(missing())}; './lab install aarch64' "
              "installs it")
        sys.exit(77)
    make(BUILD)
    unittest.main(argv=sys.argv[:1])
