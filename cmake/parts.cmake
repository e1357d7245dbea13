# A part whose library is not installed switches itself off and says so: the core always builds,
# with a compiler, CMake and Ninja alone.

# coop_part(<option> PACKAGE <CMake package> DEBIAN <Debian package>)
macro(coop_part option)
  cmake_parse_arguments(PART "" "PACKAGE;DEBIAN" "" ${ARGN})
  if(${option})
    find_package(${PART_PACKAGE} QUIET)
    if(NOT ${PART_PACKAGE}_FOUND)
      message(STATUS "${option} is off: ${PART_PACKAGE} was not found (Debian: ${PART_DEBIAN})")
      set(${option} OFF)  # this run only: once the package is installed, the part comes back
    endif()
  endif()
endmacro()
