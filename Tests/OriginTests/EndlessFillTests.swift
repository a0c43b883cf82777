import Endless
import Foundation
import HTTP
@testable import Model
@testable import Origin
import Posix
import Store
import Testing

/// Which bytes of which connection belong to an endless body, and when it is known to be one.
@Suite struct EndlessFillTests {
    private let start = Monotonic(nanoseconds: 0)
    /// ADTS frames of 8 bytes.
    private let frames: [UInt8] = (0..<4_000).flatMap { (index: Int) -> [UInt8] in
        [0xFF, 0xF1, 0x50, 0x80, 0x01, 0x1F, 0xFC, UInt8(index & 0x7F)]
    }

    private func fill(
        _ fields: [(FieldName, String)], type: String = "audio/aac"
    ) throws -> EndlessFill {
        let fields = fieldsOf(fields, type: type)
        let head = try #require(EndlessHead(.ok, fields))
        let body = EndlessBody(
            generation: 1, key: ObjectKey(sha256Of: "a"), format: head.format,
            limits: EdgeWindow.Limits(), now: start)
        return EndlessFill(body, head, fields, now: start)
    }

    private func fieldsOf(
        _ fields: [(FieldName, String)], type: String = "audio/aac"
    ) -> Fields {
        var made = Fields()
        made.append(.contentType, type)
        for (name, value) in fields { made.append(name, value) }
        return made
    }

    /// Returns what is appended of bytes.
    private func take(
        _ bytes: [UInt8], _ fill: EndlessFill, end: Int, after seconds: Int64 = 0
    ) -> [UInt8] {
        var appended: [UInt8] = []
        bytes.withUnsafeBytes {
            fill.take($0, end: Int64(end), now: start + .seconds(seconds)) { appended += $0 }
        }
        return appended
    }

    @Test func `a station is known as endless once, and its viewers enter at the edge`() throws {
        let fill = try fill([("icy-name", "radio")])
        let isWhole = take(frames, fill, end: 0) == frames
        #expect(isWhole)
        #expect(fill.body.stage == .undecided)
        #expect(fill.didWrite(to: Int64(frames.count), now: start) == .endless)
        #expect(fill.body.stage == .endless && fill.body.entry(now: start) != nil)
        #expect(fill.didWrite(to: Int64(frames.count), now: start) == .undecided)
    }

    @Test func `titles between the bytes are removed`() throws {
        let fill = try fill([("icy-metaint", "800")])
        let title: [UInt8] = [1] + Array("StreamTitle='a'\0".utf8)
        let sent = frames.prefix(800) + title + frames[800..<1_600]
        let isAudio = take(Array(sent), fill, end: 0) == Array(frames.prefix(1_600))
        #expect(isAudio)
    }

    @Test func `a new connection goes on at a frame`() throws {
        let fill = try fill([("icy-name", "radio")])
        _ = take(frames, fill, end: 0)
        fill.goOn(fieldsOf([]), now: start)
        let appended = take(Array(frames.dropFirst(3)), fill, end: frames.count, after: 1)
        let isFromFrame = frames.count.isMultiple(of: 8) && appended.count.isMultiple(of: 8)
        let isSame = appended.elementsEqual(frames.suffix(appended.count))
        #expect(isFromFrame && isSame && appended.count > frames.count - 64)
        #expect(take([1, 2], fill, end: 0) == [1, 2])
    }

    @Test func `a transport stream without tables goes on at any packet`() throws {
        let fill = try fill([], type: "video/mp2t")
        let packet: [UInt8] = [0x47, 0x01, 0x00, 0x10] + [UInt8](repeating: 0, count: 184)
        let packets = Array((0..<60).map { _ in packet }.joined())
        _ = take(packets, fill, end: 0)
        fill.goOn(fieldsOf([], type: "video/mp2t"), now: start)
        let appended = take(Array(packets.dropFirst(3)), fill, end: packets.count)
        #expect(!appended.isEmpty && appended.count.isMultiple(of: 188) && appended[0] == 0x47)
    }

    @Test func `bytes that are no stream are a file`() throws {
        let fill = try fill([])
        let noise = [UInt8](repeating: 3, count: 300_000)
        let isWhole = take(noise, fill, end: 0) == noise
        #expect(isWhole)
        #expect(fill.didWrite(to: Int64(noise.count), now: start) == .file)
        #expect(fill.body.stage == .file)
    }

    @Test func `the end of the bytes to free is given a few times a second`() throws {
        let fill = try fill([("icy-name", "radio")])
        _ = take(frames, fill, end: 0)
        _ = fill.didWrite(to: Int64(frames.count), now: start)
        #expect(fill.disposableEnd(of: 1_000, slowest: nil, now: start) == nil)
        let later = start + EndlessFill.disposalPause
        #expect(fill.disposableEnd(of: 1_000, slowest: nil, now: later) != nil)
        #expect(fill.disposableEnd(of: 1_000, slowest: nil, now: later) == nil)
        // A CDN that catches up delivers as much at once.
        let next = 1_000 + EndlessFill.disposalStep
        #expect(fill.disposableEnd(of: next, slowest: nil, now: later) != nil)
        #expect(fill.disposableEnd(of: next, slowest: nil, now: later) == nil)
    }
}
