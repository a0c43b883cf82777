-- VLC 3: plays HLS URLs through Sluice. Copy to ~/.local/share/vlc/lua/playlist/sluice.lua.
-- Set the daemon's address here; SLUICE_DAEMON in the environment counts before it.
local base = (os.getenv("SLUICE_DAEMON") or "http://127.0.0.1:9000"):gsub("/+$", "")

function probe()
    if vlc.access ~= "http" and vlc.access ~= "https" then return false end
    local url = vlc.access .. "://" .. vlc.path
    if url:sub(1, #base + 1) == base .. "/" then return false end
    return vlc.path:gsub("[?#].*$", ""):lower():match("%.m3u8$") ~= nil
end

function parse()
    local url = vlc.access .. "://" .. vlc.path
    return { { path = base .. "/" .. url, name = url } }
end
