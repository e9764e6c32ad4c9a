# The kernel contract, three ways from one source: CPU kernels, CUDA kernels in the host emulation, CUDA kernels on a GPU.
# tsr_kernels_emulated: the .cu files compiled as C++ with TSR_EMULATE_CUDA, always under AddressSanitizer and UBSan.
tsr_test(test_gemm_contract SOURCES test_gemm_contract.c LIBS tsr_kernels TIMEOUT 300 DEFINES TSR_TEST_DEVICE="cpu")

if(NOT TSR_SANITIZE MATCHES "thread") # cannot be had together with AddressSanitizer
  set(root ${PROJECT_SOURCE_DIR})
  list(TRANSFORM TSR_KERNEL_SOURCES PREPEND ${root}/ OUTPUT_VARIABLE emulated_host)
  list(TRANSFORM TSR_KERNEL_CUDA_SOURCES PREPEND ${root}/ OUTPUT_VARIABLE emulated_cuda)
  set_source_files_properties(${emulated_cuda} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;c++;-Wno-unknown-pragmas")

  add_library(tsr_kernels_emulated STATIC ${emulated_host} ${emulated_cuda} ${root}/kernels/device_emulated.c
              ${root}/kernels/cuda_emulation.cc)
  target_include_directories(tsr_kernels_emulated PRIVATE ${CBLAS_INCLUDE_DIR})
  target_compile_definitions(tsr_kernels_emulated PUBLIC TSR_EMULATE_CUDA=1)
  target_compile_options(tsr_kernels_emulated PUBLIC -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tsr_kernels_emulated PUBLIC -fsanitize=address,undefined)
  target_link_libraries(tsr_kernels_emulated PUBLIC ${BLAS_LIBRARIES} Threads::Threads m)

  tsr_test(test_gemm_contract_emulated SOURCES test_gemm_contract.c LIBS tsr_kernels_emulated TIMEOUT 600 DEFINES TSR_TEST_DEVICE="cuda")
  set_target_properties(test_gemm_contract_emulated PROPERTIES LINKER_LANGUAGE CXX)

  tsr_test(test_cuda_emulation SOURCES test_cuda_emulation.cc LIBS tsr_kernels_emulated)
endif()

tsr_test(test_gemm_contract_gpu LABEL gpu SOURCES test_gemm_contract.c LIBS tsr_kernels TIMEOUT 600 DEFINES TSR_TEST_DEVICE="cuda")
