#define LAB_GPU simt
#define LAB_GPU_NAME "simt"
#define LAB_MAKE_DEVICE make_simt_device
#include "gpu_device.inc"
