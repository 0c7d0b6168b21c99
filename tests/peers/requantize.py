"""Writes a GGUF model again with its matrices in another format, for measurements of one format.

    python3 tests/peers/requantize.py IN.gguf OUT.gguf F32|F16|BF16|Q8_0|Q4_0|Q4_1|Q5_0|Q5_1

Uses the `gguf` package's quantizers. Norms stay F32. Going up from a quantised file changes no
value: the F32 file holds exactly the numbers that the quantised one stands for.
"""
import sys

import gguf


def copy_metadata(reader, writer):
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        if kind == gguf.GGUFValueType.ARRAY:
            writer.add_array(field.name, field.contents())
        else:
            writer.add_key_value(field.name, field.contents(), kind)


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    source, target, name = sys.argv[1:]
    dtype = gguf.GGMLQuantizationType[name]
    reader = gguf.GGUFReader(source)
    architecture = reader.get_field("general.architecture").contents()
    writer = gguf.GGUFWriter(target, architecture)
    copy_metadata(reader, writer)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if len(tensor.shape) == 1:
            writer.add_tensor(tensor.name, values.astype("float32"))
        else:
            writer.add_tensor(tensor.name, gguf.quants.quantize(values, dtype), raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
