#define LAB_GPU cuda
#define LAB_GPU_NAME "cuda"
#define LAB_MAKE_DEVICE make_cuda_device
#include "gpu_device.inc"
