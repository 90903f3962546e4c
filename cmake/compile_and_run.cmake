# cmake -DSOURCE=file -DPROGRAM=file -DCOMMAND=compiler;arguments... [-DPKG_CONFIG=program -DPREFIX=dir] -P ...
# Builds a program with one compiler command and runs it: consumers without a build system. With PKG_CONFIG the flags
# are those that it knows of the package under PREFIX.
cmake_minimum_required(VERSION 3.25)
if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} ${PREFIX}/share/pkgconfig)
  execute_process(COMMAND ${PKG_CONFIG} --cflags gpumem OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags)
endif()
execute_process(COMMAND ${COMMAND} ${flags} ${SOURCE} -o ${PROGRAM} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PROGRAM} COMMAND_ERROR_IS_FATAL ANY)
