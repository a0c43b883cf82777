import Glibc

/// Victim selection: the value of titles, and the search for the least valuable one.
extension TitleAware {
    /// The maximum number of objects of one title examined for a victim.
    private static let looks = 64
    /// The number of titles skipped because of barred objects before all objects are searched.
    private static let tries = 16
    /// The number of further objects evicted from a title that the search of all objects found,
    /// before the next draw: a draw costs much, but the title may be the most valuable one.
    private static let strays = 64
    /// In a title that is being watched, objects used within this many seconds are skipped.
    private static let recent: UInt32 = 60
    /// A time more than this many seconds ahead of the clock was taken from a wrong clock.
    private static let mostAhead: UInt32 = 86_400
    /// A clock that was set back is believed after this many seconds: after a start it may be years
    /// behind until it is synchronised, and a use at such a time would end the weight of all
    /// visits.
    private static let trial: UInt32 = 3_600

    package func nextVictim(now: UInt32, isBarred: (UInt128) -> Bool) -> UInt128? {
        correctTimes(at: now)
        if structureQueue.bytes > capacity / 16, let slot = strayStructure(isBarred) {
            return evict(slot)
        }
        for _ in 0..<Self.tries {
            let title = leastTitle(now)
            if let slot = liveVictim(title, now, isBarred) { return evict(slot) }
            guard title != .none else { break }
            if let slot = mediaVictim(title, now, isBarred) {
                return evict(slot, ofGoing: title, .max)
            }
            // Everything examined is in use: count that as a use, or the next draw would find the
            // title again.
            titles.records[Int(title)].lastUsed = now
            numberUse(of: Int(title))
        }
        return anyVictim(isBarred)
    }

    /// Records a use of a title; the first use after a pause starts a new visit.
    func noteUse(of title: Slot, at now: UInt32) {
        let index = Int(title)
        let record = titles.records[index]
        if record.visitStart == 0 {
            titles.records[index].visitStart = max(1, now)
        } else if now > record.lastUsed, now - record.lastUsed > weights.pauseSeconds {
            let age = Float(now - record.lastUsed)
            titles.records[index].weight =
                (record.weight + lastVisit(of: record)) * exp2(-age / weights.halfLife)
            titles.records[index].visitStart = now
        }
        titles.records[index].lastUsed = max(now, record.lastUsed)
        numberUse(of: index)
    }

    private func numberUse(of index: Int) {
        uses &+= 1
        titles.records[index].useNumber = uses
    }

    /// Returns the weight of a title's last visit.
    private func lastVisit(of record: TitleRecord) -> Float {
        guard record.visitStart != 0 else { return weights.unread }
        let lasted = record.lastUsed - min(record.lastUsed, record.visitStart)
        return lasted < weights.shortVisitSeconds ? weights.shortVisit : 1
    }

    /// Returns the expected visits per second, from the frequency of visits and from the last one's
    /// age.
    private func value(of title: Slot, _ now: UInt32) -> Float {
        let record = titles.records[Int(title)]
        // While a clock that was set back is on trial, a use that is ahead of it counts as one before.
        let isAhead = isAhead(record.lastUsed, of: now)
        let age = isAhead ? Float(Self.trial) : Float(now - min(now, record.lastUsed))
        let rate = record.weight * exp2(-age / weights.halfLife) / weights.halfLife
        return rate + lately(lastVisit(of: record), age)
    }

    private func lately(_ weight: Float, _ age: Float) -> Float {
        weights.soon * weight / (age + weights.youth)
    }

    private func evict(_ slot: Slot) -> UInt128 {
        let name = shelf.names[Int(slot)]
        forget(slot)
        return name
    }

    /// Evicts an object of a title whose others are evicted next.
    ///
    /// - Parameters:
    ///   - slot: the object.
    ///   - title: its title.
    ///   - others: how many of them, unless the title is being evicted already.
    /// - Returns: the name of the object.
    private func evict(_ slot: Slot, ofGoing title: Slot, _ others: Int) -> UInt128 {
        goingLeft = title == goingTitle ? goingLeft - 1 : others
        goingTitle = title
        goingSince = titles.records[Int(title)].useNumber
        return evict(slot)
    }

    // MARK: Wrong clocks

    func isAhead(_ time: UInt32, of now: UInt32) -> Bool {
        time > now && time - now > Self.mostAhead
    }

    /// Notes whether the clock was set back: what was used before would be the last to be evicted
    /// until the clock has caught up, perhaps for years.
    func noteClock(_ now: UInt32) {
        if isAhead(latest, of: now) {
            latest = now
            setBackTo = now
        } else {
            latest = max(latest, now)
        }
    }

    /// True if the clock was set back and has run on for so long that it is believed.
    func isSetBackForGood(_ now: UInt32) -> Bool {
        guard let setBackTo, now > setBackTo else { return false }
        return now - setBackTo > Self.trial
    }

    /// Takes uses that are still ahead of the clock for uses at the time when it was set back;
    /// their numbers keep their order.
    ///
    /// Looks at every object, but only once after the clock was set back: a clock that is behind
    /// only for a while after the start changes nothing.
    private func correctTimes(at now: UInt32) {
        noteClock(now)
        guard let found = setBackTo, isSetBackForGood(now) else { return }
        setBackTo = nil
        let time = min(found, now)
        for index in titles.records.indices where titles.records[index].lastUsed > now {
            correct(index, to: time)
        }
        for index in shelf.lastUsed.indices where shelf.lastUsed[index] > now {
            shelf.lastUsed[index] = time
        }
    }

    /// Moves the last visit of a title to end at `time`.
    func correct(_ index: Int, to time: UInt32) {
        let record = titles.records[index]
        titles.records[index].lastUsed = time
        guard record.visitStart != 0 else { return }
        let lasted = record.lastUsed - min(record.lastUsed, record.visitStart)
        titles.records[index].visitStart = max(1, time - min(time, lasted))
    }

    // MARK: Search

    /// Returns the title being evicted, or the least valuable of a random sample.
    private func leastTitle(_ now: UInt32) -> Slot {
        if goingTitle != .none, goingLeft > 0, Int(goingTitle) < titles.records.count {
            let record = titles.records[Int(goingTitle)]
            if record.place != .none, record.useNumber == goingSince { return goingTitle }
        }
        goingTitle = .none
        let count = titles.withMedia.count
        guard count > 0 else { return .none }
        var (least, leastValue, leastUse) = (Slot.none, Float.infinity, UInt32.max)
        for number in 0..<min(count, weights.draws) {
            let place = count <= weights.draws ? number : nextDraw(below: count)
            let title = titles.withMedia[place]
            let value = value(of: title, now)
            let use = titles.records[Int(title)].useNumber
            guard (value, use) < (leastValue, leastUse) else { continue }
            (least, leastValue, leastUse) = (title, value, use)
        }
        return least
    }

    /// Returns a pseudo-random number (xorshift, Marsaglia 2003): equal call sequences find equal
    /// victims.
    private func nextDraw(below bound: Int) -> Int {
        draw ^= draw << 13
        draw ^= draw >> 7
        draw ^= draw << 17
        return Int(draw >> 33) % bound
    }

    /// Returns the least recently used live segment if it is worth less than the title.
    private func liveVictim(_ title: Slot, _ now: UInt32, _ isBarred: (UInt128) -> Bool) -> Slot? {
        for _ in 0..<min(liveQueue.count, Self.looks) {
            let slot = liveQueue.back
            let age = Float(now - min(now, shelf.lastUsed[Int(slot)]))
            guard title == .none || lately(weights.live, age) < value(of: title, now) else {
                return nil
            }
            if !isBarred(shelf.names[Int(slot)]) { return slot }
            bringForward(slot)
        }
        return nil
    }

    /// Returns the last media object of a title that is neither barred nor recently used, else one
    /// used recently.
    private func mediaVictim(_ title: Slot, _ now: UInt32, _ isBarred: (UInt128) -> Bool) -> Slot? {
        var slot = titles.records[Int(title)].media.back
        var held = Slot.none
        for _ in 0..<Self.looks where slot != .none {
            if !isBarred(shelf.names[Int(slot)]) {
                let age = now - min(now, shelf.lastUsed[Int(slot)])
                if age >= Self.recent { return slot }
                if held == .none { held = slot }
            }
            slot = shelf.previous[Int(slot)]
        }
        return held == .none ? nil : held
    }

    /// Returns one of the least recently used structure objects whose title has no media.
    private func strayStructure(_ isBarred: (UInt128) -> Bool) -> Slot? {
        for _ in 0..<min(structureQueue.count, Self.looks) {
            let slot = structureQueue.back
            let hasMedia = titles.records[Int(owners[Int(slot)])].place != .none
            if !hasMedia, !isBarred(shelf.names[Int(slot)]) { return slot }
            bringForward(slot)
        }
        return nil
    }

    /// Evicts any object that is not barred: media first, then live segments, then structure.
    ///
    /// Continues where it ended: searching from the start for each of many victims, with millions of
    /// barred objects before them, would take hours.
    private func anyVictim(_ isBarred: (UInt128) -> Bool) -> UInt128? {
        let count = titles.withMedia.count
        if searchPlace >= count { searchPlace = 0 }
        for _ in 0..<count {
            let title = titles.withMedia[searchPlace]
            var slot = titles.records[Int(title)].media.back
            while slot != .none {
                if !isBarred(shelf.names[Int(slot)]) {
                    return evict(slot, ofGoing: title, Self.strays)
                }
                slot = shelf.previous[Int(slot)]
            }
            searchPlace = searchPlace + 1 < count ? searchPlace + 1 : 0
        }
        return anyVictim(of: liveQueue, isBarred) ?? anyVictim(of: structureQueue, isBarred)
    }

    /// Evicts the last object of a queue that is not barred; the barred ones move to its front.
    private func anyVictim(of queue: SlotQueue, _ isBarred: (UInt128) -> Bool) -> UInt128? {
        var slot = queue.back
        for _ in 0..<queue.count {
            if !isBarred(shelf.names[Int(slot)]) { return evict(slot) }
            let previous = shelf.previous[Int(slot)]
            bringForward(slot)
            slot = previous
        }
        return nil
    }
}
