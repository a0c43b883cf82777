@testable import HTTPServer
import Posix
import Testing

/// Which connection gives way to a new one, and how that is summed up.
struct IdleOrderTests {
    private let start = Monotonic(nanoseconds: 1_000_000_000_000)
    private typealias Order = IdleOrder<Int>

    @Test func `the longest idle connection comes first, whatever was removed before`() {
        var order = Order()
        #expect(order.first(now: start) == nil)
        let places = (1...4).map { order.append($0, as: .served, now: start) }
        #expect(order.first(now: start) == 1)
        order.remove(places[1])
        order.remove(places[0])
        #expect(order.first(now: start) == 3)
        // In the nodes of the removed ones.
        let again = order.append(1, as: .served, now: start)
        let last = order.append(2, as: .served, now: start)
        for (place, next) in [(places[2], 4), (places[3], 1), (again, 2)] {
            order.remove(place)
            #expect(order.first(now: start) == next)
        }
        order.remove(last)
        #expect(order.first(now: start) == nil)
    }

    @Test func `connections before their first request come last, and after a second only`() {
        var order = Order()
        _ = order.append(1, as: .unused, now: start)
        let later = start + .milliseconds(900)
        let used = order.append(2, as: .served, now: later)
        let due = start + Order.grace
        #expect(order.first(now: later) == 2 && order.first(now: due) == 2)
        order.remove(used)
        #expect(order.first(now: later) == nil && order.first(now: due) == 1)
    }

    @Test func `any sequence gives the order of a plain list`() {
        var order = Order(), list: [(key: Int, place: Order.Place)] = []
        var state: UInt32 = 1
        for key in 0..<5_000 {
            state = state &* 1_664_525 &+ 1_013_904_223
            let random = Int(state >> 16)
            if random % 5 < 3 {
                list.append((key, order.append(key, as: .served, now: start)))
            } else if !list.isEmpty {
                order.remove(list.remove(at: random / 5 % list.count).place)
            }
            #expect(order.first(now: start) == list.first?.key)
        }
    }

    @Test func `an episode is told once, and summed up after a time without news`() {
        var episode = CrowdEpisode()
        var begins = [episode.note(.refused), episode.note(.closed)]
        var ends = [episode.look()]
        begins.append(episode.note(.closed))
        ends += [episode.look(), episode.look(), episode.look()]
        begins.append(episode.note(.closed))
        #expect(begins == [true, false, false, true])
        #expect(ends == [nil, nil, CrowdCounts(closed: 2, refused: 1), nil])
    }
}
