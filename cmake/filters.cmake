# Libraries that decode and encode chunks in threads (io/filters), each optional: name, header, library, Debian package.
# Without one its filter is left to HDF5, where that has it, or refused. -DTSR_ZSTD=OFF and the like leave one out.
set(TSR_FILTER_LIBRARIES
    "ZLIB zlib.h z zlib1g-dev"
    "LIBDEFLATE libdeflate.h deflate libdeflate-dev"
    "LZF lzf.h lzf liblzf-dev"
    "ZSTD zstd.h zstd libzstd-dev"
    "LZ4 lz4.h lz4 liblz4-dev"
    "BZIP2 bzlib.h bz2 libbz2-dev"
    "BLOSC blosc.h blosc libblosc-dev"
    "BLOSC2 blosc2.h blosc2 libblosc2-dev")
set(TSR_FILTERS_FOUND)       # names and
set(TSR_FILTERS_MISSING)     # packages, as text
set(TSR_FILTER_DEFINITIONS)  # TSR_HAVE_ZSTD=1 ...
set(TSR_FILTER_INCLUDE_DIRS)
set(TSR_FILTER_LINK)         # the libraries as files
foreach(line IN LISTS TSR_FILTER_LIBRARIES)
  string(REPLACE " " ";" line "${line}")
  list(GET line 0 name)
  list(GET line 1 header)
  list(GET line 2 library)
  list(GET line 3 package)
  option(TSR_${name} "Decode and encode chunks with ${package} when it is found" ON)
  find_path(TSR_${name}_INCLUDE_DIR ${header} PATH_SUFFIXES lib${library})
  find_library(TSR_${name}_LIBRARY ${library})
  mark_as_advanced(TSR_${name}_INCLUDE_DIR TSR_${name}_LIBRARY)
  if(TSR_${name} AND TSR_${name}_INCLUDE_DIR AND TSR_${name}_LIBRARY)
    string(APPEND TSR_FILTERS_FOUND " ${library}")
    list(APPEND TSR_FILTER_DEFINITIONS TSR_HAVE_${name}=1)
    list(APPEND TSR_FILTER_INCLUDE_DIRS ${TSR_${name}_INCLUDE_DIR})
    list(APPEND TSR_FILTER_LINK ${TSR_${name}_LIBRARY})
  else()
    string(APPEND TSR_FILTERS_MISSING " ${library} (${package})")
  endif()
endforeach()
if(NOT TSR_FILTERS_MISSING)
  set(TSR_FILTERS_MISSING " none")
endif()
