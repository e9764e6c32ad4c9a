# What `cmake --install` puts down, and cpack into a package. Everything is found from where it lies: the tree may be
# moved. DESTDIR counts.
include(CMakePackageConfigHelpers)
set(data ${CMAKE_INSTALL_DATADIR}/tessera)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

install(TARGETS tessera tessera-describe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

if(TARGET tessera_shared)
  # What users of the static library link: libraries of others alone, since targets of ours are not exported.
  get_target_property(links tsr_kernels INTERFACE_LINK_LIBRARIES)
  set(interface MPI::MPI_C)
  foreach(library IN LISTS TSR_HDF5_HL_LIBRARY HDF5_C_LIBRARIES TSR_FILTER_LINK links)
    list(APPEND interface $<LINK_ONLY:${library}>)
  endforeach()
  if(TSR_HAVE_CUDA)
    list(APPEND interface $<LINK_ONLY:stdc++>) # what nvcc compiles is C++
  endif()
  set_target_properties(tessera_static PROPERTIES INTERFACE_LINK_LIBRARIES "${interface}" EXPORT_NAME static)
  set_target_properties(tessera_shared PROPERTIES EXPORT_NAME tessera)
  install(TARGETS tessera_shared tessera_static EXPORT tessera
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT tessera NAMESPACE tessera:: FILE tesseraTargets.cmake DESTINATION ${package})
  configure_package_config_file(cmake/tesseraConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/tesseraConfig.cmake
    INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/tesseraConfigVersion.cmake
    VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/generated/tesseraConfig.cmake
    ${CMAKE_BINARY_DIR}/generated/tesseraConfigVersion.cmake DESTINATION ${package})

  # pkg-config: with MPI's own folders and libraries, so that any compiler will do
  file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  set(mpi_cflags)
  foreach(folder IN LISTS MPI_C_INCLUDE_DIRS)
    string(APPEND mpi_cflags " -I${folder}")
  endforeach()
  string(REPLACE ";" " " mpi_libraries "${MPI_C_LIBRARIES}")
  configure_file(cmake/tessera.pc.in generated/tessera.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/generated/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# Man pages, where help2man is.
find_program(HELP2MAN help2man)
mark_as_advanced(HELP2MAN)
if(HELP2MAN AND NOT TSR_SANITIZE)
  set(man ${CMAKE_BINARY_DIR}/man)
  add_custom_command(OUTPUT ${man}/tessera.1 COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:tessera>
    -DHELP2MAN=${HELP2MAN} -DFOLDER=${man} -P ${PROJECT_SOURCE_DIR}/cmake/manual.cmake
    DEPENDS tessera cmake/manual.cmake VERBATIM)
  add_custom_target(tessera_manual ALL DEPENDS ${man}/tessera.1)
  install(DIRECTORY ${man}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
endif()

install(FILES jobs/completions/tessera.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME tessera)
set(zsh site-functions)
if(EXISTS /etc/debian_version AND CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(zsh vendor-completions) # where Debian's packages have them
endif()
install(FILES jobs/completions/_tessera DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh})
install(FILES jobs/completions/tessera.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY jobs/ DESTINATION ${data}/jobs USE_SOURCE_PERMISSIONS
  FILES_MATCHING PATTERN "*.sbatch" PATTERN "*.machine"
  PATTERN "common.sh" PATTERN "completions" EXCLUDE PATTERN "packaging" EXCLUDE)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright) # as Debian wants it
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES app/python/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/app/python) # pages lead there,
install(FILES jobs/h200_example.machine DESTINATION ${CMAKE_INSTALL_DOCDIR}/jobs)  # and there

# A Debian package (jobs/packaging/deb.sh). dpkg-shlibdeps sees no libraries that are loaded when they are wanted.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tessera)
set(CPACK_PACKAGE_VENDOR "Tessera")
set(CPACK_PACKAGE_CONTACT "Tessera <tessera@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "products of large matrices in HDF5 files, on many GPUs")
set(CPACK_PACKAGE_DESCRIPTION "Multiplies dense matrices that lie in HDF5 files and may be larger than memory,
on as many ranks and GPUs as MPI gives it. Holds the program, libtessera and its header.")
set(CPACK_PACKAGE_FILE_NAME "tessera_${PROJECT_VERSION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "openmpi-bin, libopenblas0")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libopenmpi-dev, pkg-config")
include(CPack)
