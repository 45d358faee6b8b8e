target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @vectors(ptr addrspace(1) noalias readonly align 4 %A, ptr addrspace(1) noalias readonly align 1 %M, ptr addrspace(1) noalias writeonly align 4 %B, ptr addrspace(1) noalias writeonly align 1 %K, i64 %n, i64 %groups) #0 {
entry:
  %bx.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 2147483647}
  %bx = zext i32 %bx.id to i64
  %tx.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 8}
  %tx = zext i32 %tx.id to i64
  %.1 = mul i64 %bx, 8
  %.2 = add i64 %.1, %tx
  %.3 = mul i64 %.2, 4
  %.4 = add i64 %.3, 4
  %.5 = icmp sle i64 %.4, %n
  br i1 %.5, label %if.6.then, label %if.6.else
if.6.then:
  %.7.at = getelementptr float, ptr addrspace(1) %A, i64 %.3
  %.7 = load <4 x float>, ptr addrspace(1) %.7.at, align 4
  %.8.at = getelementptr i8, ptr addrspace(1) %M, i64 %.3
  %.8 = load <4 x i8>, ptr addrspace(1) %.8.at, align 1
  %.9 = icmp ne <4 x i8> %.8, zeroinitializer
  %.10 = fcmp olt <4 x float> %.7, <float 0x4004000000000000, float 0x4004000000000000, float 0x4004000000000000, float 0x4004000000000000>
  %.11 = and <4 x i1> %.9, %.10
  %.12.better = fcmp olt <4 x float> <float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000>, %.7
  %.12 = select <4 x i1> %.12.better, <4 x float> <float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000>, <4 x float> %.7
  %.13 = fmul <4 x float> %.12, %.7
  %.14 = extractelement <4 x float> %.7, i64 0
  %.15 = call float @__nv_expf(float %.14)
  %.16 = insertelement <4 x float> poison, float %.15, i64 0
  %.17 = extractelement <4 x float> %.7, i64 1
  %.18 = call float @__nv_expf(float %.17)
  %.19 = insertelement <4 x float> %.16, float %.18, i64 1
  %.20 = extractelement <4 x float> %.7, i64 2
  %.21 = call float @__nv_expf(float %.20)
  %.22 = insertelement <4 x float> %.19, float %.21, i64 2
  %.23 = extractelement <4 x float> %.7, i64 3
  %.24 = call float @__nv_expf(float %.23)
  %.25 = insertelement <4 x float> %.22, float %.24, i64 3
  %.26 = select <4 x i1> %.11, <4 x float> %.13, <4 x float> %.25
  %.27.at = getelementptr float, ptr addrspace(1) %B, i64 %.3
  store <4 x float> %.26, ptr addrspace(1) %.27.at, align 4
  %.28 = xor <4 x i1> %.11, <i1 true, i1 true, i1 true, i1 true>
  %.29 = zext <4 x i1> %.28 to <4 x i8>
  %.30.at = getelementptr i8, ptr addrspace(1) %K, i64 %.3
  store <4 x i8> %.29, ptr addrspace(1) %.30.at, align 1
  br label %if.6.end
if.6.else:
  %.31.lane = insertelement <4 x i64> poison, i64 %.3, i64 0
  %.31 = shufflevector <4 x i64> %.31.lane, <4 x i64> poison, <4 x i32> zeroinitializer
  %.32 = add <4 x i64> %.31, <i64 0, i64 1, i64 2, i64 3>
  %.33.lane = insertelement <4 x i64> poison, i64 %n, i64 0
  %.33 = shufflevector <4 x i64> %.33.lane, <4 x i64> poison, <4 x i32> zeroinitializer
  %.34 = icmp slt <4 x i64> %.32, %.33
  %.35 = sub i64 %n, 1
  %.36.lane = insertelement <4 x i64> poison, i64 %.35, i64 0
  %.36 = shufflevector <4 x i64> %.36.lane, <4 x i64> poison, <4 x i32> zeroinitializer
  %.37 = add <4 x i64> %.36, <i64 0, i64 -1, i64 -2, i64 -3>
  %.38.at = getelementptr float, ptr addrspace(1) %A, <4 x i64> %.37
  %.38 = call <4 x float> @llvm.masked.gather.v4f32.v4p1(<4 x ptr addrspace(1)> %.38.at, i32 4, <4 x i1> %.34, <4 x float> zeroinitializer)
  %.39 = fdiv <4 x float> %.38, <float 0x4008000000000000, float 0x4008000000000000, float 0x4008000000000000, float 0x4008000000000000>
  %.40.at = getelementptr float, ptr addrspace(1) %B, i64 %.3
  call void @llvm.masked.store.v4f32.p1(<4 x float> %.39, ptr addrspace(1) %.40.at, i32 4, <4 x i1> %.34)
  br label %if.6.end
if.6.end:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare float @__nv_expf(float) #1
declare <4 x float> @llvm.masked.gather.v4f32.v4p1(<4 x ptr addrspace(1)>, i32, <4 x i1>, <4 x float>)
declare void @llvm.masked.store.v4f32.p1(<4 x float>, ptr addrspace(1), i32, <4 x i1>)

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @vectors, !"maxntidx", i32 8, !"maxntidy", i32 1, !"maxntidz", i32 1}
