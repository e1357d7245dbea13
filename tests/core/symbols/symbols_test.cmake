# The core never prints, opens no file, reads no environment: what it must not call is not in it.
#
#   cmake -D NM=<nm> -D LIBRARY=<libcoop_core.a> -P symbols_test.cmake
set(FORBIDDEN getenv secure_getenv setenv printf fprintf vprintf puts fputs putchar perror fopen open
  std::cout std::cerr std::clog)

execute_process(COMMAND "${NM}" --undefined-only --demangle "${LIBRARY}"
  OUTPUT_VARIABLE symbols RESULT_VARIABLE status)
if(status OR NOT symbols MATCHES "snprintf")
  message(FATAL_ERROR "nm did not list what ${LIBRARY} calls (snprintf should be there)")
endif()
foreach(name IN LISTS FORBIDDEN)
  if(symbols MATCHES " U ${name}(@[^\n]*)?\n")
    message(FATAL_ERROR "the core calls ${name}; it must not print, open files or read the environment")
  endif()
endforeach()
