#define LAB_GPU simt
#define LAB_GPU_NAME "simt"
#include "gpu_device.inc"
