import FixtureCDN
import Glibc

/// `sample-cdn`: serves a folder as an origin whose delays and faults are chosen per request.
let usage = """
    usage: sample-cdn --folder PATH [--port N] [--address A] [--shape NAME]

    Serves the files of PATH over HTTP/1.1 until SIGTERM or SIGINT, and prints one line
    "listening http://A:N/" when it is ready.

      --folder PATH   folder to serve
      --port N        port to listen on; 0, the default, takes a free one
      --address A     IPv4 address to listen on; default 127.0.0.1
      --shape NAME    link to answer over: 3g, 4g, wifi, fibre or burst; default without limits
      --help          prints this

    Besides files: /bytes/<name>/<size> gives synthetic bytes. Arguments of any URL choose how it
    is answered: fb=MS rate=BPS reset=N trunc=N stall=N fails=T status=C chunked=1 eof=1 norange=1
    nototal=1
    as=PATH etag=X gzip=1 type=T location=URL cookie=SET cc=V header=N:V needcookie=N=V
    needheader=N:V needtoken=T. For scripts: /__log /__count /__reset /__set?path=P&... and
    /__live?path=P&from=PLAYLIST&window=N, which puts a sliding window under P, and
    /__lowlatency?path=P&from=PLAYLIST&part=0.5&parts=4&ranges=1, which puts a low-latency stream
    under P/master.m3u8. PLAYLIST is the path of a media playlist in the folder, such as
    /ts/360p/index.m3u8; for /__lowlatency its segments are MPEG-TS files without encryption, which
    are cut into parts at video frames.
    /__shape?profile=NAME&shared=BPS&single=BPS&connect=MS&latency=MS&every=MS&outage=MS changes
    the link; /__shape alone takes it away.

    """

/// The options of the command line.
struct Options {
    var folder: String?
    var port: UInt16 = 0
    var address = "127.0.0.1"
    var shape: LinkShape?
}

/// Writes to a descriptor without buffering, so that a reader on a pipe sees it immediately.
func say(_ text: String, to descriptor: Int32) {
    let bytes = Array(text.utf8)
    _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
}

func complain(_ message: String, status: Int32) -> Never {
    say("sample-cdn: \(message)\n", to: STDERR_FILENO)
    exit(status)
}

func parse(_ arguments: [String]) -> Options {
    var options = Options()
    var rest = arguments[...]
    while let flag = rest.popFirst() {
        if flag == "--help" || flag == "-h" {
            say(usage, to: STDOUT_FILENO)
            exit(0)
        }
        guard ["--folder", "--port", "--address", "--shape"].contains(flag) else {
            complain("unknown argument \(flag) (see --help)", status: 64)
        }
        guard let value = rest.popFirst() else { complain("\(flag) needs a value", status: 64) }
        switch flag {
        case "--folder": options.folder = value
        case "--address": options.address = value
        case "--shape":
            guard let shape = LinkShape.profile(value) else {
                complain("--shape is 3g, 4g, wifi, fibre or burst, not \(value)", status: 64)
            }
            options.shape = shape
        default:
            guard let port = UInt16(value) else {
                complain("--port takes a number from 0 to 65535, not \(value)", status: 64)
            }
            options.port = port
        }
    }
    return options
}

let options = parse(Array(CommandLine.arguments.dropFirst()))
guard let folder = options.folder else { complain("--folder is required (see --help)", status: 64) }
var status = stat()
guard stat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
    complain("\(folder) is no folder", status: 66)
}

// Blocked before the first thread starts, so that every thread leaves them to sigwait below.
var signals = sigset_t()
sigemptyset(&signals)
sigaddset(&signals, SIGTERM)
sigaddset(&signals, SIGINT)
pthread_sigmask(SIG_BLOCK, &signals, nil)

let cdn = FixtureCDN(folder: folder, address: options.address, port: options.port)
cdn.shape(options.shape)
do {
    try cdn.start()
} catch {
    complain("cannot listen: \(error)", status: 69)
}
say("listening \(cdn.baseURL)/\n", to: STDOUT_FILENO)
var received: Int32 = 0
sigwait(&signals, &received)
cdn.stop()
