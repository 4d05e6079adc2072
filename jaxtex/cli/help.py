"""What the help of each command says before its options."""

OVERVIEW = """\
Resize, rotate and warp images, and folders of images, with JAX on a CPU or a GPU.

{commands}

    jaxtex resize photos/ small/ --fit 1600x1600
    jaxtex rotate photo.jpg straight.jpg --angle -1.5 --crop
    jaxtex warp page.jpg flat.png --perspective 212,95:0,0 988,140:800,0 1090,830:800,600 97,760:0,600

"jaxtex COMMAND --help" explains a command and its options.
The exit code is 0 after success, 2 after an error, 130 after an interrupt and 143 after SIGTERM.
"""

COLORS = """\
Colors: values are blended as they are stored, gamma-encoded, as image editors do. --linear-light
blends light instead. Colors are weighted by alpha, so a transparent pixel does not bleed into its
neighbors.
"""

FILES = """\
Formats: PNG, JPEG, TIFF and WebP files are read and written. An image keeps its 8 or 16 bits per
channel if the output format can store them (PNG, TIFF: 8 and 16; JPEG, WebP: 8). PNG, TIFF and WebP
are written without loss, and JPEG with quality 95, unless --quality says otherwise. The packages that
read and write images are the extra cli: pip install '.[cli]' in a checkout of jaxtex.

Folders: with several inputs, or a folder, OUT is a folder, and files keep their names. The images are
read, warped and written in parallel. With N cores, of which at most 16 are used, at most 2 N + 9
images are in memory. An image that fails is reported and skipped. Hidden files are skipped too.

Metadata: an output in the format of its input keeps all metadata. An output in another format keeps
the color profile, EXIF, XMP and the resolution; a note names what is lost. The EXIF orientation is
applied and reset, the sizes in EXIF are updated, and its thumbnail is dropped. CMYK is converted to
sRGB by its profile. --strip drops all metadata except the color profile and the color chunks of PNG,
without which the colors would change.

Several pages: a TIFF of several pages becomes a TIFF with as many pages. --page chooses one page, which
other output formats need, or one frame of an animation. Camera raw files and volumes are refused.

Limits: images of more than 500 million pixels are refused before memory is allocated for them;
--max-pixels sets another limit. An output with a longer side than its format can store is refused too:
JPEG 65535, WebP 16383, PNG 1000000.

Large images: --tile warps one TIFF of any size to a tiled TIFF, or to a BigTIFF if it may be larger
than 4 GB. Parts of the input are mapped or decoded as tiles of the output need them. The pixels are
those of the same command without --tile. The process takes at most --memory, 2 GB by default; the report
names its peak. A run that was stopped or killed leaves OUT.part and OUT.part.tiles; with --resume and
the same options, a new run writes the missing tiles.

Replacing files: if OUT exists, it is replaced in one step, and is never incomplete. An output that is
also an input is refused without --overwrite. A file keeps its permissions, and a symbolic link stays a
link. A new file takes the permissions of IN. A read-only file is refused without --force. Other hard
links to a file keep the old image.

Resuming: a run that was stopped, by Ctrl-C, SIGTERM or a full disk, leaves only complete files.
--skip-existing (or --resume) then warps only the images that are missing.
"""

RESIZE = f"""
    jaxtex resize photo.jpg small.jpg --scale 0.5
    jaxtex resize photos/ web/ --fit 1600x1600 --format jpg --quality 85
    jaxtex resize icon.png large.png --size 512x512 --filter point

Sizes are in pixels, width before height. The corners of the image go to the corners of the output.
--size sets both sides, and may change the proportions. --fit keeps them; a smaller image keeps its size,
unless --enlarge is given too.
An image that becomes smaller is averaged, so that fine patterns become gray and not false patterns.

{COLORS}
{FILES}"""

ROTATE = f"""
    jaxtex rotate photo.jpg straight.jpg --angle -1.5 --crop
    jaxtex rotate stamp.png turned.png --angle 20 --expand --alpha
    jaxtex rotate scans/ upright/ --angle 90 --expand --recursive

Angles are in degrees, counter-clockwise as seen. The center of the input goes to the center of the
output. By default the output has the size of the input: corners of the image are cut off, and the
corners of the output show the border color. --expand enlarges the output until it shows the whole
image; then rotations by multiples of 90 degrees do not change any pixel value. --crop reduces the
output to the largest part that the image covers.

{COLORS}
{FILES}"""

UNDISTORT = f"""
    jaxtex undistort wide.jpg straight.jpg --lens -0.28,0.07
    jaxtex undistort shots/ straight/ --calibration camera.yml
    jaxtex undistort gopro.jpg flat.jpg --lens 0.02,-0.01,0,0 --model fisheye --camera 900,900,960,540

--lens and --distort take coefficients in OpenCV's order: k1,k2,p1,p2,k3 of the Brown-Conrady model, or
with --model fisheye k1,k2,k3,k4 of the model of Kannala and Brandt. Missing coefficients are 0. A
negative k1 is barrel distortion: lines bend outward. --camera sets the focal lengths and the principal
point in pixels, with pixel centers at +0.5. OpenCV has centers at whole numbers, so add 0.5 to its cx
and cy.

--calibration reads a file that OpenCV's programs or cv2.FileStorage have written, with camera_matrix
and distortion_coefficients (or K and D). It adds the half pixel. If the file names the size of its
images, the camera is scaled to images of other sizes with the same proportions. A file with
fisheye_model, or with four coefficients and --model fisheye, describes a fisheye lens.

{COLORS}
{FILES}"""

WARP = f"""
    jaxtex warp photo.jpg rotated.png --rotate 20 --filter cubic
    jaxtex warp photos/ thumbnails/ --scale 0.25 --expand --antialias
    jaxtex warp page.jpg flat.png --perspective 212,95:0,0 988,140:800,0 1090,830:800,600 97,760:0,600
    jaxtex warp wide.jpg straight.jpg --lens -0.28,0.07 --camera 910,910,960,540
    jaxtex warp scan.tif turned.tif --rotate 20 --tile

Coordinates are in pixels. The origin is the top left corner of the image, x points right, y points
down, and pixel centers are at +0.5. A transform maps points of the input to points of the output.

--scale, --shear and --rotate act about the center of the image, then --translate moves the result.
They are always applied in this order. The center of the input maps to the center of the output, also if
--size gives the output another size. --expand makes the output large enough for the whole result.

Each of the following options is a whole transform, and cannot be combined with another one:
--matrix: x' = A x + B y + C and y' = D x + E y + F, about the top left corner. Nine numbers are a
homography: x' and y' are divided by G x + H y + I.
--perspective: four points of the input and the points of the output to which they map. Pixels of
the output beyond the horizon, which would show what is behind the camera, read outside the input.
--lens removes the distortion of a lens, --distort applies it, and --calibration removes the distortion
that a file of OpenCV describes; "jaxtex undistort --help" explains their values.
--flow: a NumPy file of shape (height, width, 2) and a floating dtype, with the size of the output.
The pixel of the output at (x, y) reads the input at (x + dx, y + dy). Where dx or dy is NaN, it reads
outside the input.

An image that becomes much smaller shows aliasing; --antialias averages the input over the area that
each pixel of the output covers. Outside the input is the border color. The edge between the two is one
pixel of the output wide, and the image keeps its full brightness up to the edge.

{COLORS}
{FILES}"""

COMPLETION = """
    source <(jaxtex completion bash)
    jaxtex completion zsh > "${fpath[1]}/_jaxtex"
    jaxtex completion fish > ~/.config/fish/completions/jaxtex.fish
"""

DESCRIPTIONS = {
    "resize": RESIZE,
    "rotate": ROTATE,
    "undistort": UNDISTORT,
    "warp": WARP,
    "completion": COMPLETION,
}
