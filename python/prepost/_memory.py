# SPDX-License-Identifier: Apache-2.0
"""What may be sent or filled: anything with contiguous memory. Its bytes, and what they are of."""
import re
import sys
from typing import Any, Tuple

_BY_FORMAT = {
    "b": "int",
    "h": "int",
    "i": "int",
    "l": "int",
    "q": "int",
    "n": "int",
    "B": "uint",
    "H": "uint",
    "I": "uint",
    "L": "uint",
    "Q": "uint",
    "N": "uint",
    "e": "float",
    "f": "float",
    "d": "float",
    "c": "uint",
    "?": "uint",
}
_TYPES = (
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
)


def torch_module() -> Any:
    return sys.modules.get("torch")  # which whoever has a tensor has imported


def is_tensor(memory: Any) -> bool:
    torch = torch_module()
    return torch is not None and isinstance(memory, torch.Tensor)


def element_type(memory: Any) -> str:
    """The type of its elements; of what has none here, as structures and complex numbers, ""."""
    if is_tensor(memory):
        name = str(memory.dtype).partition(".")[2]
        return "uint8" if name == "bool" else name if name in _TYPES else ""
    with memoryview(buffer_of(memory)) as view:
        letters = view.format.lstrip("@=<")
        kind = _BY_FORMAT.get(letters, "")
        return f"{kind}{8 * view.itemsize}" if kind else ""


def shape_of(memory: Any) -> Tuple[int, ...]:
    if is_tensor(memory):
        return tuple(memory.shape)
    with memoryview(buffer_of(memory)) as view:
        return tuple(view.shape or ())


def item_bytes(memory: Any) -> int:
    if is_tensor(memory):
        return int(memory.element_size())
    with memoryview(buffer_of(memory)) as view:
        return view.itemsize


def is_of_bools(memory: Any) -> bool:
    if is_tensor(memory):
        return bool(memory.dtype == torch_module().bool)
    with memoryview(buffer_of(memory)) as view:
        return view.format.lstrip("@=<") == "?"


def bytes_of(memory: Any) -> int:
    with memoryview(buffer_of(memory)) as view:
        return view.nbytes


def new_like(like: Any, shape: Tuple[int, ...]) -> Any:
    """Memory of the type of `like`: an array of NumPy or a tensor of PyTorch if that is one, else
    bytes."""
    if is_tensor(like):
        return torch_module().empty(shape, dtype=like.dtype)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(like, (numpy.ndarray, numpy.generic)):
        return numpy.empty(shape, dtype=like.dtype)
    count = 1
    for side in shape:
        count *= side
    with memoryview(buffer_of(like)) as view:
        memory = bytearray(count * view.itemsize)
        return memoryview(memory).cast(view.format.lstrip("@=<"))  # type: ignore[call-overload]


def _tensor_bytes(tensor: Any, torch: Any) -> Any:
    """The memory of a tensor of PyTorch, as an array of bytes: NumPy lacks types such as bfloat16,
    and tensors with a gradient, as all parameters of a model are, have to be detached from it."""
    if tensor.device.type != "cpu":
        raise TypeError(
            f"the tensor is on {tensor.device}, and only memory of the CPU can be sent or filled"
        )
    if not tensor.is_contiguous():
        raise BufferError("the tensor is not contiguous")
    return tensor.detach().reshape(-1).view(torch.uint8).numpy()


def _check_view(view: memoryview) -> None:
    """Refuses memory whose bytes are not the values, and what is not in one piece."""
    if "O" in re.sub(":[^:]*:", "", view.format):  # without the names of fields
        raise TypeError(
            "the memory holds references to objects of Python, which mean nothing to another"
            " process"
        )
    if not view.c_contiguous:
        raise BufferError("the memory is not contiguous, in the order of C")


def buffer_of(memory: Any) -> Any:
    """`memory`, or what it has the buffer protocol through, as tensors of PyTorch on the CPU do."""
    if isinstance(memory, (bytes, bytearray)):
        return memory
    try:
        with memoryview(memory) as view:
            _check_view(view)
    except ValueError as error:  # NumPy's, for types such as datetime64
        raise TypeError(
            f"the memory cannot be sent or filled: {error}; an array's view() as integers can"
        ) from None
    except TypeError:
        torch = sys.modules.get("torch")  # which whoever has a tensor has imported
        if torch is not None and isinstance(memory, torch.Tensor):
            return _tensor_bytes(memory, torch)
        if not hasattr(memory, "numpy"):
            raise
        return memory.numpy()
    return memory
