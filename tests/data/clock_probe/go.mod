module clockprobe

go 1.26.0
