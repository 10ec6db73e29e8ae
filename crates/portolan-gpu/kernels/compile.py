"""CUDA C to PTX through NVRTC's C interface, kept as gzip; called by `compile` beside this file."""

import ctypes
import gzip
import pathlib
import re
import sys
import zlib

from nvidia import cuda_nvrtc

HERE = pathlib.Path(__file__).resolve().parent
# The oldest devices that each set of kernels runs on.
KERNELS = {"layered": "compute_80", "resident": "compute_90"}


def library() -> ctypes.CDLL:
    folder = pathlib.Path(next(iter(cuda_nvrtc.__path__))) / "lib"
    # NVRTC looks for its built-in headers by name: they must be there before it.
    ctypes.CDLL(str(folder / "libnvrtc-builtins.so.12.0"), ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(folder / "libnvrtc.so.12"))


def ptx_of(nvrtc: ctypes.CDLL, name: str, architecture: str) -> str:
    source = HERE / f"{name}.cu"
    program = ctypes.c_void_p()
    arguments = (source.read_bytes(), source.name.encode(), 0, None, None)
    if code := nvrtc.nvrtcCreateProgram(ctypes.byref(program), *arguments):
        sys.exit(f"{source.name}: NVRTC error {code}")
    header = f"--include-path={HERE}"
    options = [f"--gpu-architecture={architecture}", "--std=c++17", header]
    flags = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    code = nvrtc.nvrtcCompileProgram(program, len(options), flags)
    if code:
        sys.exit(f"{source.name}: {text_of(nvrtc, program, 'ProgramLog')}")
    ptx = text_of(nvrtc, program, "PTX")
    # Where the source lay when it was compiled is nobody's business.
    assert str(HERE) not in ptx
    return f"// {fingerprint(source)}\n{ptx}"


def fingerprint(source: pathlib.Path) -> str:
    """FNV-1a over the header and the source: a test without NVRTC looks at it too."""
    value = 0xCBF29CE484222325
    for byte in (HERE / "common.cuh").read_bytes() + source.read_bytes():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def text_of(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.value.decode()


def compressed(text: str) -> bytes:
    """As gzip without a name and a time, so that the same text gives the same bytes."""
    deflate = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    return deflate.compress(text.encode()) + deflate.flush()


def same(kept: str | None, ptx: str) -> bool:
    """NVRTC orders some instructions by addresses in its memory. Without address randomisation,
    which `compile` turns off, they are the same on one machine. Elsewhere the order may differ:
    then the source must be the same, and every kernel with its arguments."""
    if kept is None:
        return False
    entries = [re.findall(r"\.entry (\w+)\(([^)]*)\)", text) for text in (kept, ptx)]
    return kept == ptx or (kept.split("\n", 1)[0] == ptx.split("\n", 1)[0] and entries[0] == entries[1])


def main() -> None:
    checking = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not checking:
        sys.exit("usage: compile [--check]")
    nvrtc = library()
    # All kernels before any file is read: see `same`.
    compiled = {name: ptx_of(nvrtc, name, architecture) for name, architecture in KERNELS.items()}
    for name, ptx in compiled.items():
        place = HERE / f"{name}.ptx.gz"
        kept = gzip.decompress(place.read_bytes()).decode() if place.exists() else None
        # Another version of zlib makes other bytes of the same text: the old ones then stay.
        if not checking and kept != ptx:
            place.write_bytes(compressed(ptx))
        elif checking and not same(kept, ptx):
            sys.exit(f"{place.name} is not what {name}.cu gives: run {HERE.name}/compile")


main()
