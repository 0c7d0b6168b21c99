// The storage types of GGUF. Source: ggml's include/ggml.h (numbers) and src/ggml-common.h
// (sizes); numbers that ggml has removed are absent.
#include <array>

#include "lab/model/gguf.hpp"

namespace lab {
namespace {

constexpr GgmlType supported(std::uint32_t id, DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  return {id, info.name, info.block_size, info.block_bytes, dtype};
}

constexpr std::array kTypes = {
    supported(0, DType::f32),
    supported(1, DType::f16),
    supported(2, DType::q4_0),
    supported(3, DType::q4_1),
    supported(6, DType::q5_0),
    supported(7, DType::q5_1),
    supported(8, DType::q8_0),
    GgmlType{9, "Q8_1", 32, 36, {}},
    supported(10, DType::q2_k),
    supported(11, DType::q3_k),
    supported(12, DType::q4_k),
    supported(13, DType::q5_k),
    supported(14, DType::q6_k),
    GgmlType{15, "Q8_K", 256, 292, {}},
    GgmlType{16, "IQ2_XXS", 256, 66, {}},
    GgmlType{17, "IQ2_XS", 256, 74, {}},
    GgmlType{18, "IQ3_XXS", 256, 98, {}},
    GgmlType{19, "IQ1_S", 256, 50, {}},
    supported(20, DType::iq4_nl),
    GgmlType{21, "IQ3_S", 256, 110, {}},
    GgmlType{22, "IQ2_S", 256, 82, {}},
    GgmlType{23, "IQ4_XS", 256, 136, {}},
    GgmlType{24, "I8", 1, 1, {}},
    GgmlType{25, "I16", 1, 2, {}},
    GgmlType{26, "I32", 1, 4, {}},
    GgmlType{27, "I64", 1, 8, {}},
    GgmlType{28, "F64", 1, 8, {}},
    GgmlType{29, "IQ1_M", 256, 56, {}},
    supported(30, DType::bf16),
    GgmlType{34, "TQ1_0", 256, 54, {}},
    GgmlType{35, "TQ2_0", 256, 66, {}},
    GgmlType{39, "MXFP4", 32, 17, {}},
    GgmlType{40, "NVFP4", 64, 36, {}},
    GgmlType{41, "Q1_0", 128, 18, {}},
    GgmlType{42, "Q2_0", 64, 18, {}},
};

}  // namespace

const GgmlType* find_ggml_type(std::uint32_t id) {
  for (const GgmlType& type : kTypes)
    if (type.id == id) return &type;
  return nullptr;
}

std::uint32_t ggml_type_id(DType dtype) {
  std::uint32_t id = 0;
  for (const GgmlType& type : kTypes)
    if (type.dtype == dtype) id = type.id;
  return id;
}

}  // namespace lab
