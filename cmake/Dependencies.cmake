# Every library that decodelab uses is found here, once. packages.txt names the packages.
find_package(fmt REQUIRED)
find_package(TBB REQUIRED)
find_package(cxxopts REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(xtensor REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
if(LAB_BUILD_TESTS)
  find_package(Catch2 REQUIRED)  # 2.13 on Debian 12, 3 on Ubuntu 24.04
endif()
