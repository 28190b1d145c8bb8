import Base
import Glibc

// Hands the process's arguments and surroundings to the command tree, and exits with its status.

StandardDescriptors.fillGaps()
// A write to a pipe whose reader has left is an error (EPIPE). By default it ends the process, which then could not say
// that a new secret is lost.
signal(SIGPIPE, SIG_IGN)
exit(await CommandLineTool.runProcess(Array(CommandLine.arguments.dropFirst())).rawValue)
