// Small texts: files, and what a program answers about itself.
import Glibc
import Posix

/// The text of a small file; empty when it cannot be read.
func readText(_ path: String) -> String {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 16_384)
    let count = read(file, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
}

/// Writes a small file, replacing an existing one.
func writeText(_ text: String, to path: String) throws {
    let file = try openFile(path, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o644)
    try Array(text.utf8).withUnsafeBytes { try writeAll($0, to: file.number, at: 0) }
}

/// Fetches a small text on a new connection; blocks for ten seconds at most.
func getText(_ address: SocketAddress, _ path: String) throws -> String {
    let connection = try connect(to: address)
    let request = "GET \(path) HTTP/1.1\r\nHost: \(address)\r\nConnection: close\r\n\r\n"
    _ = Array(request.utf8).withUnsafeBytes { Posix.send($0, to: connection.number) }
    var text: [UInt8] = []
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
    defer { buffer.deallocate() }
    var poll = pollfd(fd: connection.number, events: Int16(POLLIN), revents: 0)
    while Glibc.poll(&poll, 1, 10_000) > 0 {
        switch receive(from: connection.number, into: buffer) {
        case .bytes(let count): text += buffer[..<count]
        case .wouldBlock: continue
        default: return String(decoding: text, as: UTF8.self)
        }
    }
    throw BenchError("no answer to \(path)")
}

/// Reads one number of a JSON text that a program answers with; blocks.
///
/// - Parameters:
///   - name: the member.
///   - address: the program's.
///   - path: of the text.
/// - Returns: the number.
/// - Throws: `BenchError` if there is no such number.
func jsonNumber(_ name: String, at address: SocketAddress, _ path: String) throws -> Double {
    let text = try getText(address, path)
    guard let found = text.firstRange(of: "\"\(name)\":"),
        let value = Double(text[found.upperBound...].prefix(while: \.isNumber))
    else { throw BenchError("\(address)\(path) has no number \(name)") }
    return value
}
