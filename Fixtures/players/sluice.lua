-- mpv: plays HLS URLs through Sluice. Copy to ~/.config/mpv/scripts/sluice.lua.
--
-- Options, in ~/.config/mpv/script-opts/sluice.conf or as --script-opts=sluice-base=...:
--   base   address of the daemon, http://127.0.0.1:9000
--   token  its access token, if it has one
--   check  no: do not ask whether the daemon answers (asking needs curl)
local options = { base = "http://127.0.0.1:9000", token = "", check = true }
require("mp.options").read_options(options, "sluice")
options.base = options.base:gsub("/+$", "")

local function is_playlist(url)
    local path = url:match("^[Hh][Tt][Tt][Pp][Ss]?://([^?#]*)")
    return path ~= nil and path:lower():match("%.m3u8?$") ~= nil
end

-- 401 is an answer too: the token stays off curl's command line, which every user can read.
local function daemon_answers()
    local result = mp.command_native({
        name = "subprocess", playback_only = false, capture_stdout = true, capture_stderr = true,
        args = {
            "curl", "--silent", "--noproxy", "*", "--max-time", "2", "--output", "/dev/null",
            "--write-out", "%{http_code}", options.base .. "/api/health",
        },
    })
    local status = result ~= nil and result.status == 0 and result.stdout or ""
    return status == "200" or status == "401"
end

local function encoded(text)
    return (text:gsub("[^%w%-._~]", function(byte)
        return string.format("%%%02X", byte:byte())
    end))
end

-- After ytdl_hook (priority 10), so that the playlists that yt-dlp finds are played through it too.
mp.add_hook("on_load", 50, function()
    local url = mp.get_property("stream-open-filename", "")
    if not is_playlist(url) or url:sub(1, #options.base + 1) == options.base .. "/" then
        return
    end
    if options.check and not daemon_answers() then
        mp.msg.warn("no daemon answers at " .. options.base .. "; playing without it")
        return
    end
    local through = options.base .. "/" .. url
    if options.token ~= "" then
        through = options.base .. "/proxy?url=" .. encoded(url) .. "&token=" .. encoded(options.token)
    end
    mp.msg.verbose("playing through " .. options.base)
    mp.set_property("stream-open-filename", through)
end)
