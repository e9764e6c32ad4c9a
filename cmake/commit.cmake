# Writes the commit of SOURCE into the header OUTPUT, when it is another than the header says: run at every build, it
# makes nothing stale and nothing anew. Without git, or outside a checkout of our own, it is what `git archive` put into
# commit.txt, or "unknown".
set(commit unknown)
find_program(git NAMES git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE head RESULT_VARIABLE failed
                  ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  get_filename_component(source ${SOURCE} REALPATH)
endif()
# a tarball unpacked inside another project is not that project
if(git AND NOT "${top}" STREQUAL "" AND "${top}" STREQUAL "${source}" AND NOT failed)
  execute_process(COMMAND ${git} -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes
    ERROR_QUIET)
  set(commit ${head})
  if(NOT "${changes}" STREQUAL "")
    string(APPEND commit " and changes to it")
  endif()
else()
  file(STRINGS ${SOURCE}/cmake/commit.txt archived LIMIT_COUNT 1)
  if(archived MATCHES "^[0-9a-f]+$")
    set(commit ${archived})
  endif()
endif()
set(text "#define TSR_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT "${text}" STREQUAL "${before}")
  file(WRITE ${OUTPUT} "${text}")
endif()
