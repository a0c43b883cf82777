// The allowance of frames that request nothing, as a value.
import Posix
import Testing

@testable import HTTPServer

struct FrameAllowanceTests {
    private let now = Monotonic(nanoseconds: 1_000_000_000)

    @Test func `two updates of windows for each 4 KiB of content are allowed at any speed`() {
        var allowance = FrameAllowance(now: now)
        for _ in 0..<4_096 {
            allowance.noteContent(4_096)
            guard allowance.takeUpdate(now: now), allowance.takeUpdate(now: now) else {
                Issue.record("the updates of an honest reader are refused")
                return
            }
        }
    }

    @Test func `updates of windows without content are soon refused`() {
        var allowance = FrameAllowance(now: now)
        allowance.noteContent(1 << 30)
        let most = FrameAllowance.mostUpdates + FrameAllowance.most
        let isAllowed = (0...most).map { _ in allowance.takeUpdate(now: now) }
        #expect(isAllowed == Array(repeating: true, count: most) + [false])
    }

    @Test func `dropped fields cost one frame per 64 KiB`() {
        var allowance = FrameAllowance(now: now)
        let perFrame = 16
        let most = FrameAllowance.most * perFrame + perFrame - 1
        let isAllowed = (0...most).map { _ in
            allowance.takeFields(FrameAllowance.fieldBytes / perFrame, now: now)
        }
        #expect(isAllowed == Array(repeating: true, count: most) + [false])
    }

    @Test func `what content earns for updates of windows pays for no other frames`() {
        var allowance = FrameAllowance(now: now)
        allowance.noteContent(1 << 30)
        let isAllowed = (0...FrameAllowance.most).map { _ in allowance.take(1, now: now) }
        #expect(isAllowed == Array(repeating: true, count: FrameAllowance.most) + [false])
    }
}
