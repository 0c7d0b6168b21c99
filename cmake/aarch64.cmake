# Builds for 64-bit Arm on another machine with Debian's compiler, and runs the programs with
# qemu: the group [aarch64] of packages.txt. qemu finds Debian's loader and libraries by itself;
# told to look for them with -L, it searches for ever.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu max)

set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# Headers only, which Debian files under the architecture that it built them on.
set(xtensor_DIR /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake/xtensor)
