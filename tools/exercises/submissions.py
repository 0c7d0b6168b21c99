"""Reads what students hand in: folders, .zip, .tar, .tar.gz, or the bare file.

Nothing is ever extracted to disk, so an archive's paths, links and claimed sizes do no harm.
"""
import pathlib
import re
import stat
import tarfile
import zipfile
import zlib

from .problem import ExerciseError

WANTED = re.compile(r"exercise\.(hpp|cuh|cu|cpp)")
FILE_BYTES = 1 << 20
MEMBERS = 10000
ARCHIVE = re.compile(r"\.(zip|tar|tar\.gz|tgz|tar\.bz2|tar\.xz)$")
# Not proof of anything: a reason for a person to look.
SUSPICIOUS = re.compile(
    r"\b(_?exit|_Exit|quick_exit|at_quick_exit|atexit|abort|system|popen|v?fork|clone"
    r"|execl[ep]?|execvp?e?|posix_spawn|setsid|kill|ptrace|dlopen|dlsym|mmap|mprotect|syscall"
    r"|constructor|asm|__asm__|__attribute__|getenv|environ|fopen|freopen|ofstream|ifstream"
    r"|catch2?|Catch|CATCH_\w+|TEST_CASE|INFO|longjmp|signal|sigaction|socket)\b|/proc\b"
    r"|^\s*#\s*(?:include\s*[<\"](?:fstream|filesystem|unistd|dlfcn|csignal|sys/|/|\.\.)"
    r"|define\s+(?:private|if|while|for|return|true|false|[A-Z]+_?(?:CHECK|REQUIRE)\w*|CHECK\w*"
    r"|REQUIRE\w*)\b|pragma\s+GCC\s+(?!diagnostic))", re.MULTILINE)


def student_name(path):
    """The student's name: the folder's or the archive's."""
    name = ARCHIVE.sub("", path.name)
    return path.stem if name == path.name and path.is_file() else name


def members_of_folder(folder):
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        if stat.S_ISREG(about.st_mode):
            yield path.relative_to(folder).parts, about.st_size, path.read_bytes


def members_of_zip(path):
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist()[:MEMBERS]:
            if not member.is_dir():
                def read(member=member):
                    with archive.open(member) as file:
                        return file.read(FILE_BYTES + 1)
                yield pathlib.PurePosixPath(member.filename).parts, member.file_size, read


def members_of_tar(path):
    with tarfile.open(path) as archive:
        for count, member in enumerate(archive):
            if count >= MEMBERS:
                return
            if member.isreg():
                def read(member=member):
                    return archive.extractfile(member).read(FILE_BYTES + 1)
                yield pathlib.PurePosixPath(member.name).parts, member.size, read


def members(path):
    if path.is_dir():
        return members_of_folder(path)
    if zipfile.is_zipfile(path):
        return members_of_zip(path)
    if tarfile.is_tarfile(path):
        return members_of_tar(path)
    if ARCHIVE.search(path.name):
        raise ExerciseError("the archive is broken")
    return iter([((path.name,), path.stat().st_size, path.read_bytes)])


def take(path):
    """The exercise's files in a submission, {name: bytes}; of several the one nearest the top.

    @throws ExerciseError if the submission cannot be read
    """
    found = {}
    try:
        for parts, size, read in members(path):
            name = parts[-1] if parts else ""
            if not WANTED.fullmatch(name) or "__MACOSX" in parts:
                continue
            if size > FILE_BYTES:
                raise ExerciseError(f"{name} is larger than {FILE_BYTES >> 20} MiB")
            if name not in found or len(parts) < found[name][0]:
                data = read()
                if len(data) > FILE_BYTES:
                    raise ExerciseError(f"{name} is larger than {FILE_BYTES >> 20} MiB")
                found[name] = (len(parts), data)
    except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zlib.error,
            zipfile.BadZipFile, tarfile.TarError) as problem:
        raise ExerciseError(f"it cannot be read: {problem}") from problem
    return {name: data for name, (_, data) in found.items()}


def suspicious(data):
    """The words in a submitted file that a person should look at."""
    text = data.decode(errors="replace")
    return sorted({" ".join(match[0].split()) for match in SUSPICIOUS.finditer(text)})
