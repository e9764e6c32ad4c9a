# Writes the commit of SOURCE into the header OUTPUT, when it is another than the header says: run at every build, it
# makes nothing stale and nothing anew. A copy without history says what commit.txt does: `git archive` puts the commit
# there, and so may whoever copies. That counts first, because a packager's repository has commits of its own. Else it
# is git's word, where SOURCE is a checkout of our own, or "unknown".
set(commit unknown)
file(STRINGS ${SOURCE}/cmake/commit.txt archived LIMIT_COUNT 1)
find_program(git NAMES git)
if(archived MATCHES "^[0-9a-f]+$")
  string(SUBSTRING ${archived} 0 12 commit)
elseif(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE head RESULT_VARIABLE failed
                  ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${git} -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes
    RESULT_VARIABLE unclear ERROR_QUIET)
  get_filename_component(source ${SOURCE} REALPATH)
  # a tarball unpacked inside another project is not that project
  if(NOT failed AND NOT unclear AND "${top}" STREQUAL "${source}")
    set(commit ${head})
    if(NOT "${changes}" STREQUAL "")
      string(APPEND commit " and changes to it")
    endif()
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
