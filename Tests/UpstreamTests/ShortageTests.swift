import Glibc
import Posix
import Testing
import Upstream

/// What this machine refuses is reported as its failure, not as one of the origin.
@Suite struct ShortageTests {
    @Test func `a connection without a free descriptor is a failure of the daemon`() async {
        await #expect(processExitsWith: .success) {
            // Nobody accepts: a thread that did would take a descriptor for moments.
            let any = SocketAddress(bytes: [127, 0, 0, 1], port: 0)
            let listener = try listen(on: any, sharingPort: false)
            let url = "http://127.0.0.1:\(try localAddress(of: listener.number).port)/"
            let harness = try Harness()
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            var former = rlimit()
            #expect(getrlimit(resource, &former) == 0)
            let free = dup(0)
            close(free)
            var limit = rlimit(rlim_cur: rlim_t(free), rlim_max: former.rlim_max)
            #expect(setrlimit(resource, &limit) == 0)
            // The second needs a pair of sockets to look the name up.
            for place in [url, "http://does-not-exist.invalid/"] {
                let record = try harness.fetch(place)
                #expect(record.failure?.kind == .shortage, "\(place): \(record.results)")
                #expect(record.failure?.fault == .daemon && record.failure?.isRetryable == true)
                #expect(record.failure?.advice.contains("LimitNOFILE") == true)
            }
            #expect(setrlimit(resource, &former) == 0)
            let later = try harness.fetch(url) { $0.timeouts.firstByte = .milliseconds(150) }
            #expect(later.failure?.kind == .firstByteTimeout)
            harness.stop()
            _ = consume listener
        }
    }
}
