# Targets of .cu files. Each file is compiled up to three times: by the host compiler for the
# emulator, by the host compiler with every memory access reported to the emulator ("trace"),
# and, with LAB_CUDA, by nvcc.
include_guard()

option(LAB_CUDA "Compile the kernels for NVIDIA GPUs too (needs nvcc)" OFF)
if(LAB_CUDA)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 75 80 86 90)
  endif()
  enable_language(CUDA)
endif()

# What the host compiler needs to take CUDA C++ for C++: GCC 12 calls a null function to
# initialise a block-scope extern thread_local unless it is told that there is none. Lines
# are for the emulator's reports; addr2line 2.40 confuses the files of DWARF 5.
add_library(lab_emulated INTERFACE)
target_compile_options(lab_emulated INTERFACE
  -g1 -gdwarf-4 -Wno-unknown-pragmas -Wno-unused-function
  -fno-strict-aliasing  # kernels read their own bits as other types, as nvcc lets them
  $<$<CXX_COMPILER_ID:GNU>:-fno-extern-tls-init>)
if(NOT LAB_SANITIZE)
  target_compile_options(lab_emulated INTERFACE -O2)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Unrolled as kernels are, one of them takes five minutes with every check inline: addresses
  # are checked by calls, and what UBSan would check of them is left to that and to the trace.
  target_compile_options(lab_emulated INTERFACE
    -fno-sanitize=fuzzer-no-link,null,alignment,object-size,pointer-overflow,vptr
    "SHELL:-mllvm -asan-instrumentation-with-call-threshold=0" -Wno-pass-failed)
endif()
# Only the instrumentation of the thread sanitizer, whose callbacks the emulator defines. An
# access must stay as it is written: no float4 taken apart, no loads merged.
add_library(lab_traced INTERFACE)
target_compile_options(lab_traced INTERFACE -O1 -fno-tree-vectorize
  $<$<CXX_COMPILER_ID:GNU>:-fno-tree-sra;--param=tsan-instrument-func-entry-exit=0>
  $<$<CXX_COMPILER_ID:GNU>:--param=tsan-distinguish-volatile=1>
  $<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -tsan-instrument-func-entry-exit=0>
  $<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -tsan-distinguish-volatile=1>
  -fsanitize=thread)

# _lab_emulated_sources(VARIABLE a.cu ...): one generated .cpp for each, because CMake ties a
# source's language to the folder, not to the target.
function(_lab_emulated_sources variable)
  set(result)
  foreach(source ${ARGN})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE relative)
    set(wrapper ${PROJECT_BINARY_DIR}/emulated/${relative}.cpp)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"${source}\"\n")
    list(APPEND result ${wrapper})
  endforeach()
  set(${variable} ${result} PARENT_SCOPE)
endfunction()

# lab_cu_library(name SOURCES a.cu ... LINKS lab::x ...): lab::name_simt, lab::name_simt_trace
# and, with LAB_CUDA, lab::name_cuda.
function(lab_cu_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  _lab_emulated_sources(emulated ${ARG_SOURCES})
  lab_library(${name}_simt SOURCES ${emulated} LINKS lab::simt ${ARG_LINKS}
              PRIVATE $<BUILD_INTERFACE:lab_emulated>)
  if(NOT LAB_SANITIZE)  # two sanitizers cannot be combined
    lab_library(${name}_simt_trace SOURCES ${emulated} LINKS lab::simt_trace ${ARG_LINKS}
                PRIVATE $<BUILD_INTERFACE:lab_emulated> $<BUILD_INTERFACE:lab_traced>)
  endif()
  if(LAB_CUDA)
    add_library(lab_${name}_cuda STATIC ${ARG_SOURCES})
    add_library(lab::${name}_cuda ALIAS lab_${name}_cuda)
    target_include_directories(lab_${name}_cuda
      PUBLIC ${PROJECT_BINARY_DIR}/include ${PROJECT_SOURCE_DIR}/kernels/include
             ${PROJECT_SOURCE_DIR}/kernels)
    target_link_libraries(lab_${name}_cuda PUBLIC ${ARG_LINKS})
    target_compile_options(lab_${name}_cuda PRIVATE
      -std=c++20 --expt-relaxed-constexpr -diag-suppress=554 -Xcompiler=-Wall,-Wextra)
    set_target_properties(lab_${name}_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
endfunction()
