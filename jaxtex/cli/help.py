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
Colors are blended as they are stored, gamma-encoded, as image editors do; --linear-light blends light.
They are weighted by alpha, so transparent pixels do not bleed into their neighbors.
"""

FILES = """\
Formats: PNG, JPEG, TIFF and WebP are read and written. PNG and TIFF keep 16 bits per channel; JPEG and
WebP have 8. JPEG is written with quality 95, the others without loss, unless --quality says otherwise.
The packages that read and write images: pip install '.[cli]' in a checkout of jaxtex.

Folders: if IN is a folder, or several files, OUT is a folder, and files keep their names. An image that
fails is reported, and the others are written. Hidden files are skipped.

Metadata: EXIF with GPS, XMP, resolution and color profile are kept. Other metadata is kept if the format
stays the same; a note names what is lost. The EXIF orientation is applied to the pixels. --strip drops
all metadata except what the colors need.

Pages: a TIFF of several pages becomes a TIFF of as many pages. --page chooses one, which other formats
need, or a frame of an animation. Camera raw files are refused.

Limits: images of more than 500 million pixels are refused; --max-pixels sets another limit. --tile warps
a TIFF of any size in at most 2 GB of memory, or --memory.

Safety: files that exist in a folder OUT, and inputs, are replaced only with --overwrite, and read-only
ones with --force; a file that is named as OUT is replaced. A file is replaced in one step, when the new one
is complete. After Ctrl-C, the same command with --skip-existing (or --resume) makes what is missing.

docs/command-line.md has the details.
"""

RESIZE = f"""
    jaxtex resize photo.jpg small.jpg --scale 0.5
    jaxtex resize photos/ web/ --fit 1600x1600 --format jpg --quality 85
    jaxtex resize icon.png large.png --size 512x512 --filter point

Sizes are in pixels, width before height. --size sets both sides, and may change the proportions. --fit
keeps them; smaller images keep their size, unless --enlarge is given too. An image that becomes smaller is
averaged, so that fine patterns become gray and not false patterns.

{COLORS}
{FILES}"""

ROTATE = f"""
    jaxtex rotate photo.jpg straight.jpg --angle -1.5 --crop
    jaxtex rotate stamp.png turned.png --angle 20 --expand --alpha
    jaxtex rotate scans/ upright/ --angle 90 --expand --recursive

Angles are in degrees, counter-clockwise as seen. The image turns about its center. By default the output
has the size of the input: corners of the image are cut off, and the corners of the output show the border
color. --expand makes the output so large that it shows the whole image; then multiples of 90 degrees
change no pixel value. --crop makes it the largest part that the image covers.

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

--calibration reads a file that OpenCV's programs, cv2.FileStorage or ROS have written, with camera_matrix
and distortion_coefficients (or K and D). It adds the half pixel. If the file names the size of its
images, the camera is scaled to images of other sizes with the same proportions. A file with
fisheye_model, with a model such as equidistant, or with --model fisheye, describes a fisheye lens.
A rectification (R) and the camera of the result (P), as stereo files have them, are applied. The
calibration is for the picture as the camera stores it, and turns with the EXIF orientation.

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

--scale, --shear and --rotate act about the center of the image, then --translate moves the result, always
in this order. The center of the input maps to the center of the output, whatever its size.

Each of these options is a whole transform, and cannot be combined with another one:
--matrix: x' = A x + B y + C and y' = D x + E y + F, about the top left corner. Nine numbers are a
homography: x' and y' are divided by G x + H y + I.
--perspective: four points of the input, such as the corners of a page, and the points of the output to
which they map. Beyond the horizon the output shows the outside of the input.
--lens removes the distortion of a lens, --distort applies it, and --calibration removes the distortion
that a file of OpenCV describes; "jaxtex undistort --help" explains their values.
--flow: a NumPy file of shape (height, width, 2) and a floating dtype, with the size of the output.
The pixel of the output at (x, y) reads the input at (x + dx, y + dy). Where dx or dy is NaN, it reads
outside the input.

An image that becomes much smaller shows false patterns (aliasing); --antialias averages the input over the
area that each pixel of the output covers. Outside the input is the border color.

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
