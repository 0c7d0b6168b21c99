#define LAB_GPU cuda
#define LAB_GPU_NAME "cuda"
#include "gpu_device.inc"
