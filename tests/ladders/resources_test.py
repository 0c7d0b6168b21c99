"""The tool that reads what the compiler says about kernels; needs neither nvcc nor a GPU."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from kernels import occupancy, resources, sass  # noqa: E402

# What NVIDIA's cuda_occupancy.h (CUDA 13.0) answers: threads, registers, shared bytes -> blocks.
ON_BOTH = {(32, 16, 0): 32, (32, 255, 0): 8, (64, 33, 1000): 24, (128, 40, 0): 12, (128, 128, 34000): 4,
           (192, 37, 5000): 8, (256, 32, 0): 8, (256, 40, 1024): 6, (256, 64, 8448): 4,
           (256, 96, 32768): 2, (256, 104, 8448): 2, (256, 128, 0): 2, (256, 255, 0): 1,
           (512, 64, 0): 2, (512, 65, 0): 1, (1024, 32, 8192): 2, (1024, 64, 49152): 1,
           (96, 48, 100): 13}

PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1av' for 'sm_80'
ptxas info    : Function properties for _Z1av
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 96 registers, used 1 barriers, 32768 bytes smem, 388 bytes cmem[0]
ptxas info    : Compiling entry function '_Z1bv' for 'sm_80'
ptxas info    : Function properties for _Z1bv
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for _Z6calledv
    0 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers, 360 bytes cmem[0]
"""

PTX = """.visible .entry _Z1av(
\t.param .u64 _Z1av_param_0
)
.maxntid 32, 8, 1
{
\tmov.u32 %r1, dynamic_smem;
}
\t.entry _Z1bv(
\t.param .u64 _Z1bv_param_0
)
{
\tret;
}
"""

SASS = """.text._Z1av:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P1 LDG.E.128.CONSTANT R4, [R2.64] ;
        /*0020*/                   LDG.E R4, [R2.64] ;
        /*0030*/                   LDS.128 R4, [R2] ;
        /*0040*/                   HMMA.16816.F32 R4, R8, R10, R4 ;
        /*0050*/                   IDP.4A.S8.S8 R4, R8, R10, R4 ;
        /*0060*/                   LDGSTS.E.BYPASS.128 [R3], [R4.64] ;
        /*0070*/                   LDSM.16.M88.4 R12, [R13] ;
        /*0080*/                   STL [R1], R2 ;
        /*0090*/                   NOP;
.text._Z1bv:
        /*0000*/                   EXIT ;
"""


class OccupancyTest(unittest.TestCase):
    def test_as_nvidia_has_it(self):
        for arch in occupancy.SMS:
            for (threads, registers, shared), blocks in ON_BOTH.items():
                self.assertEqual(occupancy.blocks_per_sm(arch, threads, registers, shared), blocks,
                                 (arch, threads, registers, shared))
        self.assertEqual(occupancy.blocks_per_sm("sm_80", 32, 24, 100000), 1)
        self.assertEqual(occupancy.blocks_per_sm("sm_90", 32, 24, 100000), 2)

    def test_share(self):
        self.assertEqual(occupancy.occupancy("sm_80", 256, 32, 0), 1)
        self.assertEqual(occupancy.occupancy("sm_80", 256, 96, 32768), 0.25)
        self.assertEqual(occupancy.occupancy("sm_80", 96, 48, 100), 39 / 64)


class ReadingTest(unittest.TestCase):
    def test_ptxas(self):
        kernels = resources.parse_ptxas(PTXAS)
        self.assertEqual(kernels["_Z1av"], {"registers": 96, "spill_stores": 0, "spill_loads": 0,
                                            "stack": 0, "shared": 32768})
        self.assertEqual(kernels["_Z1bv"], {"registers": 30, "spill_stores": 12, "spill_loads": 16,
                                            "stack": 16, "shared": 0})

    def test_ptx(self):
        self.assertEqual(resources.parse_ptx(PTX), {"_Z1av": (256, True), "_Z1bv": (None, False)})

    def test_sass(self):
        kernels = sass.count(SASS)
        self.assertEqual({k: n for k, n in kernels["_Z1av"].items() if n},
                         {"all": 9, "LDG.128": 1, "LDG": 2, "LDS.128": 1, "LDS": 1, "HMMA": 1,
                          "IDP.4A": 1, "LDGSTS": 1, "LDSM": 1, "local": 1})
        self.assertEqual(kernels["_Z1bv"]["all"], 1)

    def test_names(self):
        for mangled, name in (
                ("void lab::cuda::(anonymous namespace)::tiled<32>(float*, int)", "tiled<32>"),
                ("void lab::cuda::(anonymous namespace)::a<(int)32, lab::cuda::Q4>(float*)", "a<32, Q4>"),
                ("lab::cuda::(anonymous namespace)::naive(float*)", "naive")):
            self.assertEqual(resources.short(mangled), name)

    def test_a_spill_is_told(self):
        fine = {"spill_stores": 0, "spill_loads": 0}
        bad = {"spill_stores": 8, "spill_loads": 4}
        kernels = [{"file": "a.cu", "kernel": "a", "sm_80": fine, "sm_90": fine},
                   {"file": "b.cu", "kernel": "b", "sm_80": fine, "sm_90": bad}]
        self.assertEqual(resources.spilling(kernels),
                         ["b.cu: b spills on sm_90: 8 bytes of stores, 4 of loads"])

    def test_every_kernel_is_listed(self):
        files = resources.listed()
        self.assertIn("kernels/ladders/gemm/8_double_buffer.cu", files)
        self.assertIn("kernels/cuda/add.cu", files)


if __name__ == "__main__":
    unittest.main()
