import FixtureCDN
import ScenarioSupport
import Testing

/// Players over TLS show the same as over HTTP in the clear.
extension Players {
    @Suite struct OverTLS {
        @Test(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"), arguments: Stream.allCases)
        func `ffmpeg with certificate verification decodes the same frames`(stream: Stream) throws {
            let stage = try SecureStage()
            let secure = try Tool.framemd5(
                stage.through(stream), ["-tls_verify", "1", "-ca_file", stage.authority])
            let clear = try Tool.framemd5(stage.plain.through(stream))
            #expect(secure != nil && secure == clear)
            #expect(try stage.plain.figure("tls_handshakes_full_total") > 0)
        }

        @Test(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
        func `ffmpeg that does not trust the authority plays nothing`() throws {
            let stage = try SecureStage()
            let other = try SecureStage()
            let options = ["-tls_verify", "1", "-ca_file", other.authority]
            #expect(try Tool.framemd5(stage.through(.transportStream), options) == nil)
            #expect(stage.plain.cdn.requestCount() == 0)
        }

        @Test(
            .enabled(if: Tool.exists("mpv"), "needs mpv"),
            arguments: [Stream.transportStream, .fragmentedMP4, .plainFile])
        func `mpv with certificate verification shows the same frames`(stream: Stream) throws {
            let stage = try SecureStage()
            let options = ["--tls-verify=yes", "--tls-ca-file=\(stage.authority)"]
            let secure = try Self.frames(of: stage.through(stream), options)
            let clear = try Self.frames(of: stage.plain.through(stream), [])
            #expect(secure.count >= stream.videoFrames && secure == clear)
        }

        @Test(.enabled(if: Tool.exists("chromium"), "needs chromium"))
        func `hls.js plays to the end over TLS and HTTP/2`() throws {
            let stage = try SecureStage()
            let site = FixtureCDN()
            try site.start()
            defer { site.stop() }
            let page = try HLSPage(stage.through(.fragmentedMP4), site, rate: 4)
            let frames = Stream.fragmentedMP4.videoFrames
            // The browser's own store of authorities is not changed.
            let shown = try page.watch(frames: frames, ["--ignore-certificate-errors"])
            #expect(shown >= frames - 24)
            #expect(try stage.plain.figure("http2_requests_total") > 0)
        }

        /// The hash of every video frame that mpv decodes.
        private static func frames(of url: String, _ options: [String]) throws -> [Substring] {
            let result = try Tool.run(
                [
                    "mpv", "--no-config", "--no-terminal", "--framedrop=no", "--hls-bitrate=max",
                    "--no-audio", "--ovc=rawvideo", "--of=framemd5", "--o=-",
                ] + options + [url])
            #expect(result.status == 0, "mpv fails on \(url)")
            return result.stdout.split(separator: "\n").filter { !$0.hasPrefix("#") }
                .compactMap { $0.split(separator: ",").last }
        }
    }
}

/// A stage whose daemon also listens for TLS.
private final class SecureStage: Sendable {
    let plain: Stage
    private let url: String
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        let made = try Tool.run([
            DaemonProcess.builtBinary(), "tls", "init", "--folder", folder.path, "127.0.0.1",
        ])
        guard made.status == 0 else { throw ScenarioFailure("tls init: \(made.stderr)") }
        plain = try Stage([
            "--tls-port", "0", "--tls-cert", folder.file("server.pem"), "--tls-key",
            folder.file("server.key"),
        ])
        guard let url = plain.daemon.secureURL else {
            throw ScenarioFailure("no ready line for TLS")
        }
        self.url = url
    }

    var authority: String { folder.file("authority.pem") }

    func through(_ stream: Stream) -> String { "\(url)/\(plain.cdn.url(stream.path))" }
}
