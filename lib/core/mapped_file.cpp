#include "lab/core/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "lab/core/error.hpp"

namespace lab {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  LAB_CHECK(fd >= 0, "cannot open '{}': {}; check the path", path.string(),
            std::strerror(errno));
  struct stat info {};
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  void* mapped = nullptr;
  if (regular && info.st_size > 0)
    mapped = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE,
                  fd, 0);
  close(fd);  // the mapping keeps the file
  LAB_CHECK(regular, "'{}' is not a regular file; give the path of a model file",
            path.string());
  LAB_CHECK(mapped != MAP_FAILED, "cannot map '{}' into memory: {}", path.string(),
            std::strerror(errno));
  data_ = static_cast<const std::byte*>(mapped);
  size_ = static_cast<std::size_t>(info.st_size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::span<const std::byte> part) const {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin =
      (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end =
      reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace lab
