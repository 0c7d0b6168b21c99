# How a decodelab target is made: one function for libraries, one for programs, one for tests.
include_guard()

# `#include "lab/core/view.hpp"` is lib/core/view.hpp: the link gives lib/ its include root.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/lib ${PROJECT_BINARY_DIR}/include/lab SYMBOLIC)

add_library(lab_flags INTERFACE)
target_compile_features(lab_flags INTERFACE cxx_std_20)
target_compile_options(lab_flags INTERFACE -Wall -Wextra -Wshadow -Wno-psabi
                       $<$<BOOL:${LAB_WERROR}>:-Werror>)
# GCC 12 sees overflows in inlined std::string and std::vector code that are not there
# (gcc.gnu.org/PR105329, PR105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(lab_flags INTERFACE -Wno-restrict -Wno-stringop-overflow
                         -Wno-stringop-overread -Wno-array-bounds)
endif()
# Contraction would let the compiler fuse a*b+c where the definition rounds twice; kernels that
# want a fused multiply-add ask for it.
target_compile_options(lab_flags INTERFACE -ffp-contract=off)
if(LAB_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(LAB_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "LAB_FUZZ needs clang: use the preset cpu-debug")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)  # so that the fuzzer sees the library's branches
endif()

# lab_library(core SOURCES a.cpp ... LINKS lab::x ... PRIVATE fmt::fmt ...): target lab::core
function(lab_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PRIVATE" ${ARGN})
  add_library(lab_${name} STATIC ${ARG_SOURCES})
  add_library(lab::${name} ALIAS lab_${name})
  target_include_directories(
    lab_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                       $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/kernels/include>
                       $<INSTALL_INTERFACE:include>)
  target_link_libraries(lab_${name} PUBLIC ${ARG_LINKS} PRIVATE ${ARG_PRIVATE}
                        $<BUILD_INTERFACE:lab_flags>)
  target_compile_features(lab_${name} PUBLIC cxx_std_20)
  set_target_properties(lab_${name} PROPERTIES EXPORT_NAME ${name})
endfunction()

# lab_program(name SOURCES ... LINKS ...)
function(lab_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} lab_flags)
endfunction()
