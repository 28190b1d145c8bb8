import Base
import Glibc

// Hands the process's arguments and surroundings to the command tree, and exits with its status.

StandardDescriptors.fillGaps()
exit(await CommandLineTool.run(Array(CommandLine.arguments.dropFirst()), in: .process()).rawValue)
