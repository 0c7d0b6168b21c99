"""Theoretical occupancy: how many blocks of a kernel an SM can hold at once.

Source of the limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
Source of the rounding: NVIDIA's cuda_occupancy.h, with which the test compares.
"""
import dataclasses

WARP = 32
REGISTERS_A_WARP_STEP = 256     # registers are handed to a warp in steps of this
SHARED_STEP = 128               # and shared memory to a block, in bytes


@dataclasses.dataclass(frozen=True)
class Sm:
    """What one multiprocessor has."""
    warps: int
    blocks: int
    shared: int                 # bytes
    reserved: int = 1024        # bytes of shared memory that the system takes for each block
    registers: int = 65536
    parts: int = 4              # each with its own registers; a warp lives in one of them


SMS = {"sm_80": Sm(warps=64, blocks=32, shared=164 * 1024),
       "sm_90": Sm(warps=64, blocks=32, shared=228 * 1024)}


def round_up(value, step):
    return -(-value // step) * step


def blocks_per_sm(arch, threads, registers, shared):
    """Blocks of `threads` threads, each with `registers`, and `shared` bytes a block."""
    sm = SMS[arch]
    warps = round_up(threads, WARP) // WARP
    limits = [sm.blocks, sm.warps // warps,
              sm.shared // round_up(shared + sm.reserved, SHARED_STEP)]
    if registers:
        a_warp = round_up(registers * WARP, REGISTERS_A_WARP_STEP)
        limits.append(sm.registers // sm.parts // a_warp * sm.parts // warps)
    return min(limits)


def occupancy(arch, threads, registers, shared):
    """The share of the SM's warps that can be there at once."""
    warps = round_up(threads, WARP) // WARP
    return blocks_per_sm(arch, threads, registers, shared) * warps / SMS[arch].warps
