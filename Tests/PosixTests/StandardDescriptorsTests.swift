import Glibc
import Posix
import Testing

/// Descriptors that whoever starts the process has closed.
struct StandardDescriptorsTests {
    @Test func `a file opened later does not get the number of a closed descriptor`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            for number in STDIN_FILENO...STDERR_FILENO { close(number) }
            StandardDescriptors.occupy()
            let file = open("/dev/null", O_RDWR)
            var byte: UInt8 = 0
            guard file > STDERR_FILENO, read(STDIN_FILENO, &byte, 1) < 0,
                write(STDOUT_FILENO, &byte, 1) < 0, write(STDERR_FILENO, &byte, 1) < 0
            else { _exit(1) }
            _exit(7)
        }
    }

    @Test func `descriptors that are open stay as they are`() {
        var before = stat()
        var after = stat()
        #expect(fstat(STDERR_FILENO, &before) == 0)
        StandardDescriptors.occupy()
        #expect(fstat(STDERR_FILENO, &after) == 0)
        #expect(before.st_ino == after.st_ino && before.st_dev == after.st_dev)
    }
}
