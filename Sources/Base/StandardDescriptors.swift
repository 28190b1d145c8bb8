import Glibc

/// Standard input, output and error of a program, which whoever starts it may have closed.
public enum StandardDescriptors {
    /// Opens /dev/null in the place of each one that is closed. Otherwise the next files that the program opens would
    /// have their numbers, and what it logs or prints would be written into these files.
    ///
    /// To be called before the program opens anything. Reading and writing fail as before: /dev/null is open for the
    /// other of the two only.
    public static func fillGaps() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // It gets this number, because those below are taken (open(2)).
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}
