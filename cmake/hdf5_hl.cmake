# HDF5's high-level library, of the same HDF5, attaches dimension scales to C. Without it C goes without them.
# -DTSR_HDF5_HL=OFF leaves it out.
option(TSR_HDF5_HL "Attach dimension scales with hdf5_hl when it is found" ON)
list(GET HDF5_C_LIBRARIES 0 tsr_hdf5_file)
get_filename_component(tsr_hdf5_folder "${tsr_hdf5_file}" DIRECTORY)
find_path(TSR_HDF5_HL_INCLUDE_DIR hdf5_hl.h PATHS ${HDF5_C_INCLUDE_DIRS} NO_DEFAULT_PATH)
find_library(TSR_HDF5_HL_FILE hdf5_hl PATHS "${tsr_hdf5_folder}" NO_DEFAULT_PATH)
mark_as_advanced(TSR_HDF5_HL_INCLUDE_DIR TSR_HDF5_HL_FILE)
set(TSR_HDF5_HL_LIBRARY)
set(TSR_HDF5_HL_TEXT "nothing: hdf5_hl is missing")
if(TSR_HDF5_HL AND TSR_HDF5_HL_INCLUDE_DIR AND TSR_HDF5_HL_FILE)
  set(TSR_HDF5_HL_LIBRARY ${TSR_HDF5_HL_FILE})
  set(TSR_HDF5_HL_TEXT ${TSR_HDF5_HL_FILE})
endif()
