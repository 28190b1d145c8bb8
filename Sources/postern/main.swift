import Glibc

// The program: hands the process's arguments and surroundings to the command line's tree, exits with what it says.

exit(await CommandLineTool.run(Array(CommandLine.arguments.dropFirst()), in: .process()).rawValue)
