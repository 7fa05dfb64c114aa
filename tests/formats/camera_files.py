"""Small files in the form of the cameras' own, with numbers of ours."""

VENICE = """"Timecode","Clip Name","Lens Model","Lens Serial","Focal Length (mm)","Aperture",\
"Focus Distance (ft)","Camera Tilt","Camera Roll","Camera Model"
"10:00:00:22","A001C001_260101XX","7050.0100","","50","T 2 3/10","10","","","MPC-3628"
"10:00:00:23","A001C001_260101XX","7050.0100","","50","T 2 3/10","7.5","","","MPC-3628"
"10:00:01:00","A001C001_260101XX","7050.0100","","50","T 2 3/10","Infinity","","","MPC-3628"
"10:00:01:01","A001C001_260101XX","7050.0100","","50","T 2 3/10","","","","MPC-3628"
"""
VENICE_XML = """<?xml version="1.0" encoding="UTF-8"?>
<NonRealTimeMeta xmlns="urn:schemas-professionalDisc:nonRealTimeMeta:ver.2.10">
 <Duration value="4"/>
 <LtcChangeTable tcFps="24" halfStep="false">
  <LtcChange frameCount="0" value="22000010" status="increment"/>
 </LtcChangeTable>
 <VideoFormat>
  <VideoFrame videoCodec="X" captureFps="24.00p" formatFps="24p"/>
  <VideoLayout pixel="4096" numOfVerticalLine="2160"/>
 </VideoFormat>
 <Device manufacturer="Sony" modelName="AXS-R7"/>
 <Camera manufacturer="Sony" modelName="MPC-3628"/>
 <Lens manufacturer="" modelName="S7i-50                 "/>
 <AcquisitionRecord>
  <Group name="LensUnitMetadataSet">
   <Item name="LensAttributes" value="7050.0100"/>
  </Group>
 </AcquisitionRecord>
</NonRealTimeMeta>
"""
TALKING_XML = VENICE_XML.replace(
    "<Item",
    '<Item name="LensZoomActualFocalLength" value="50.00mm"/>'
    '<Item name="FocusPositionFromImagePlane" value="3.040m"/><Item',
    1,
)
COOKE = ("64/40/40/{}/48/70/58/40/40/40/40/42/66/6D/40/40/46/5E/40/40/46/73/45/4E/41/7F/40/40/"
         "53/41/42/43/0A/0D")  # fmt: skip
RED = f"""FrameNo,Timecode,Timestamp,Aperture,Focus Distance,Focal Length,Acceleration X,\
Acceleration Y,Acceleration Z,Rotation X,Rotation Y,Rotation Z,Cooke Metadata
0,10:00:00:00,,5.6,1200,35,0.03,0.08,1.0,0,0,0,{COOKE.format("53/44")}
1,10:00:00:01,,5.6,1250,35,0.03,0.08,1.0,0,0,0,{COOKE.format("53/60")}
2,10:00:00:02,,5.6,0,35,0.03,0.08,1.0,0,0,0,
"""
"""0b010011_000100 is 1220, 0b010011_100000 is 1248."""
RED_STATIC = (
    "Clip Name,Camera,Camera Model,Camera Model ID,ReelID,Frame Width,Frame Height,FPS,"
    "Record FPS,Total Frames,Abs TC,Aperture,Focal Length,Focus Distance,Lens Mount,Lens,"
    "Lens Brand,Lens Name,Lens Owner,Lens Focus Distance,Notes,Lens,Focal Length\n"
    "B002_C001,B,KOMODO-X 6K S35,99,002,6144,3240,25,25,3,10:00:00:00,F5.6,35mm,1200mm,P/L,,"
    'ACME          ,35mm T1.5,ACME,1210mm,"a note, with a\ncomma",,35mm\n'
)
CANON = (
    "Timecode,Record_Date_Year,FocusPosition,FocalLength,FocalLength35mm,ElectricZoom\n"
    "1:00:00:00,2026,3F000000,180/10,263/10,65535/65535\n"
    "1:00:00:01,2026,3F400000,1855/100,263/10,65535/65535\n"
    "1:00:00:02,2026,3F400000,65535/65535,263/10,65535/65535\n"
)
CANON_STATIC = (
    "SceneNumber,LensSqueezeFactor,UMID,CreationTime,Timescale,Duration,Width,Height,BitDepth\n"
    ",0,060A,2026/01/01 10:00,30000,3003,5952,3140,12\n"
)
BLACKMAGIC = """
Clip Metadata
manufacturer: Blackmagic Design
camera_type: Blackmagic Pocket Cinema Camera 6K Pro
crop_origin: 16,8,
crop_size: 6144,3456,
format_frame_rate: 1572864
lens_type: ACME Zoom 18-35mm
post_3dlut_embedded_data: 0,0,0

Frame 0 Metadata
sensor_rate: 48,1,
shutter_value: 180°
focal_length: 24mm
distance: 1250mm
iso: 800

Frame 1 Metadata
sensor_rate: 48,1,
focal_length: 25mm
distance: inf

Frame 3 Metadata
sensor_rate: 48,1,
focal_length: 25mm
"""
