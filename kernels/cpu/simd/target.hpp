/// @file
/// Compiling a region of a file for an instruction set, without compiler flags: the rest of
/// the program still runs on any CPU.
#pragma once

#define LAB_PRAGMA(text) _Pragma(#text)
// Everything between LAB_TARGET_BEGIN and LAB_TARGET_END, templates included.
#ifdef __clang__
#define LAB_TARGET_BEGIN(isa) \
  LAB_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define LAB_TARGET_END LAB_PRAGMA(clang attribute pop)
#else
#define LAB_TARGET_BEGIN(isa) LAB_PRAGMA(GCC push_options) LAB_PRAGMA(GCC target(isa))
#define LAB_TARGET_END LAB_PRAGMA(GCC pop_options)
#endif

/// Functions of a vocabulary: they must become instructions, not calls.
#define LAB_INLINE [[gnu::always_inline]] static inline

/// Unrolls the loop that follows, so that what depends on its counter becomes constant.
#define LAB_UNROLL(n) LAB_PRAGMA(GCC unroll n)
